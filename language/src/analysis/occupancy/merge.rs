//! Several states as one: how two states relate, and what describes both.
//!
//! Invariant: a join describes every situation of both states; rounding outwards never loses one.

use super::facts::{Cause, Count, Fact, Key, Link, Site};
use super::lattice::{Grain, MANY, Places, Range, Size};
use super::layout::Layout;
use super::state::{MOST_FACTS, Scene, State};

/// How a state relates to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// It describes every situation of the other.
    Includes,
    Included,
    /// The join describes nothing but what one of the two describes: they differ in one independent
    /// fact, and their values for it lie side by side.
    JoinsExactly,
    /// Joining them loses something; [`State::distance`] says how much.
    Apart,
    /// They speak of different individuals, and must not be joined.
    Separate,
}

impl State {
    pub fn relate(&self, scene: &Scene, other: &State) -> Relation {
        if self.is_separate(other) {
            return Relation::Separate;
        }
        let apart = |found: &Comparison| found.relation() == Relation::Apart;
        self.compare(scene, other, apart).relation()
    }

    /// Whether they speak of different individuals.
    pub fn is_separate(&self, other: &State) -> bool {
        let bound = |(a, b): (&Places, &Places)| a.is_bound() == b.is_bound();
        self.dispatched != other.dispatched || !self.places.iter().zip(&other.places).all(bound)
    }

    /// How much joining the two loses, of states that are apart; None: no less than `limit`.
    pub fn distance(&self, scene: &Scene, other: &State, limit: u32) -> Option<u32> {
        let too_far = |found: &Comparison| found.distance >= limit;
        Some(self.compare(scene, other, too_far).distance).filter(|distance| *distance < limit)
    }

    /// Compares the two until `enough` is found: most pairs are known to be apart after a few of
    /// many containers.
    fn compare(
        &self,
        scene: &Scene,
        other: &State,
        enough: impl Fn(&Comparison) -> bool,
    ) -> Comparison {
        let mut found = Comparison::default();
        for (index, (a, b)) in self.cells.iter().zip(&other.cells).enumerate() {
            if a.count != b.count {
                found.count(a.count, b.count, scene.is_filtered(index as u16));
                if enough(&found) {
                    return found;
                }
            }
        }
        for compare in [State::compare_threads, State::compare_variables, State::compare_relations]
        {
            compare(self, scene, other, &mut found);
            if enough(&found) {
                break;
            }
        }
        found
    }

    fn compare_threads(&self, _scene: &Scene, other: &State, found: &mut Comparison) {
        for (a, b) in self.places.iter().zip(&other.places) {
            if a != b {
                found.differ(b.within(*a), a.within(*b), true, 3);
            }
        }
        for (a, b) in self.traits.iter().zip(&other.traits) {
            if a != b {
                found.differ(b & !a == 0, a & !b == 0, true, 2);
            }
        }
        if self.roles != other.roles {
            found.differ(other.roles & !self.roles == 0, self.roles & !other.roles == 0, true, 4);
        }
    }

    fn compare_variables(&self, _scene: &Scene, other: &State, found: &mut Comparison) {
        for (a, b) in self.variables.iter().zip(&other.variables) {
            if a != b {
                // Values apart are a flag that tells two ways from each other.
                let weight = if a.apart(*b) { 3 } else { 1 };
                found.differ(a.includes(*b), b.includes(*a), touch(*a, *b), weight);
            }
        }
    }

    fn compare_relations(&self, scene: &Scene, other: &State, found: &mut Comparison) {
        for (a, b) in [
            (self.below_cpus, other.below_cpus),
            (self.sighted, other.sighted),
            (self.allowed, other.allowed),
        ] {
            if a != b {
                found.differ(a & !b == 0, b & !a == 0, false, 1);
            }
        }
        if self.facts != other.facts {
            let knows =
                |one: &State, fact: &Fact| fact.count.includes(one.count(scene, fact.site()));
            let includes = found.includes() && self.facts.iter().all(|fact| knows(other, fact));
            let included = found.included() && other.facts.iter().all(|fact| knows(self, fact));
            found.differ(includes, included, false, 4);
        }
        if self.links != other.links {
            let includes = found.includes() && self.links.iter().all(|link| other.has(scene, link));
            let included = found.included() && other.links.iter().all(|link| self.has(scene, link));
            found.differ(includes, included, false, 1);
        }
    }

    fn has(&self, scene: &Scene, link: &Link) -> bool {
        if self.links.contains(link) {
            return true;
        }
        let mut sum = Some(link.offset);
        for site in link.sites.into_iter().flatten() {
            let size = self.count(scene, site).seen;
            sum = sum
                .filter(|_| size.lo == size.hi && size.hi != MANY)
                .and_then(|sum| sum.checked_add(i64::from(size.lo)));
        }
        sum.is_some() && self.variables[usize::from(link.variable)].constant() == sum
    }

    /// The situations of both, and perhaps more.
    pub fn join(&mut self, scene: &Scene, other: &State) {
        let facts = self.common_facts(scene, other);
        let links: Vec<Link> = (self.links.iter().filter(|link| other.has(scene, link)))
            .chain(
                other
                    .links
                    .iter()
                    .filter(|link| !self.links.contains(link) && self.has(scene, link)),
            )
            .copied()
            .collect();
        for (a, b) in self.cells.iter_mut().zip(&other.cells) {
            a.count = a.count.hull(b.count);
            a.cause = if a.cause == b.cause { a.cause } else { Cause::Several };
        }
        for (a, b) in self.places.iter_mut().zip(&other.places) {
            *a = a.with(*b);
        }
        for (a, b) in self.traits.iter_mut().zip(&other.traits) {
            *a |= b;
        }
        for (a, b) in self.variables.iter_mut().zip(&other.variables) {
            *a = a.hull(*b);
        }
        self.facts = facts;
        self.links = links;
        self.below_cpus &= other.below_cpus;
        self.sighted &= other.sighted;
        self.allowed &= other.allowed;
        self.roles |= other.roles;
    }

    /// What both know of elements, also where one knows it of a constant index and the other of a
    /// variable.
    fn common_facts(&self, scene: &Scene, other: &State) -> Vec<Fact> {
        let mut common: Vec<Fact> = Vec::new();
        let mut consider = |container: u16, key: Key| {
            let site = Site::Element(container, key);
            let count = self.count(scene, site).hull(other.count(scene, site));
            let known =
                self.any_element(scene, container).hull(other.any_element(scene, container));
            let new = common.iter().all(|fact| (fact.container, fact.key) != (container, key));
            if count != known && new && common.len() < MOST_FACTS {
                common.push(Fact { container, key, count });
            }
        };
        for (one, facts) in [(self, &self.facts), (other, &other.facts)] {
            for fact in facts {
                consider(fact.container, fact.key);
                if fact.key.variable.is_none() {
                    for (variable, range) in one.variables.iter().enumerate() {
                        if range.constant() == Some(fact.key.offset) {
                            consider(
                                fact.container,
                                Key { variable: Some(variable as u16), offset: 0 },
                            );
                        }
                    }
                }
            }
        }
        common
    }

    /// Outwards to one of few states, so that a growing description comes to rest.
    pub fn coarsen(&mut self, layout: &Layout, grain: Grain) {
        if grain == Grain::Exact {
            return;
        }
        for (cell, home) in self.cells.iter_mut().zip(&layout.homes) {
            // A queue of at most one thread will hold more before long.
            let queue = grain == Grain::Phase && home.capacity > 1 && cell.count.held.hi > 0;
            let count = if queue {
                cell.count.hull(Count::both(Size { lo: MANY, hi: MANY }))
            } else {
                cell.count
            };
            cell.count = count.coarse(grain);
        }
        for range in &mut self.variables {
            *range = layout.coarse(*range);
        }
        for fact in &mut self.facts {
            fact.count = fact.count.coarse(grain);
        }
    }
}

/// What a comparison has found so far.
#[derive(Default)]
struct Comparison {
    not_includes: bool,
    not_included: bool,
    differences: u32,
    not_side_by_side: bool,
    distance: u32,
}

impl Comparison {
    fn differ(&mut self, includes: bool, included: bool, side_by_side: bool, weight: u32) {
        self.not_includes |= !includes;
        self.not_included |= !included;
        self.not_side_by_side |= !side_by_side;
        self.differences += 1;
        self.distance += weight;
    }

    fn count(&mut self, a: Count, b: Count, filtered: bool) {
        let one_of_two = !filtered || a.held == b.held || a.seen == b.seen;
        let side_by_side = one_of_two
            && touch(a.held.range(), b.held.range())
            && touch(a.seen.range(), b.seen.range());
        // Whether a `threadref` is full matters most.
        let tells = a.held.hi <= 1 && b.held.hi <= 1;
        self.differ(a.includes(b), b.includes(a), side_by_side, if tells { 3 } else { 1 });
    }

    fn includes(&self) -> bool {
        !self.not_includes
    }

    fn included(&self) -> bool {
        !self.not_included
    }

    fn relation(&self) -> Relation {
        if self.includes() {
            Relation::Includes
        } else if self.included() {
            Relation::Included
        } else if self.differences <= 1 && !self.not_side_by_side {
            Relation::JoinsExactly
        } else {
            Relation::Apart
        }
    }
}

/// Whether nothing lies between two ranges.
fn touch(a: Range, b: Range) -> bool {
    a.lo <= b.hi.saturating_add(1) && b.lo <= a.hi.saturating_add(1)
}
