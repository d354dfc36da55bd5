//! What is known at one point of a handler, on one path to it.
//!
//! A [`State`] describes a set of situations by independent facts (a box), with three kinds of
//! relations that schedulers live by: an individual thread's place bounds that container's size
//! ([`State::reduce`]); a variable may equal a sum of sizes ([`Link`]); an array's element at an
//! index that a variable holds has a size of its own ([`Fact`]).
//!
//! **Held and seen.** `held` counts the threads physically in a container, `seen` those that the
//! handler can read. They differ only inside `schedule` on an engine with several CPUs, where
//! shared containers show just the threads that may run on this one; `seen` is never more than
//! `held`. Everywhere else the two are kept equal.

use super::facts::{Cause, Cell, Change, Count, Fact, Key, Link, Site};
use super::lattice::{Places, Range, Size, Truth};
use super::layout::{Layout, OTHER, RUNNING, Reach};

/// What surrounds a state: does not change while a handler is analysed.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    pub layout: &'a Layout,
    pub in_schedule: bool,
}

impl Scene<'_> {
    pub fn is_filtered(&self, container: u16) -> bool {
        self.layout.is_filtered(container, self.in_schedule)
    }
}

#[derive(Clone, Debug)]
pub struct State {
    /// By container; of arrays what holds for every element.
    pub cells: Vec<Cell>,
    /// By individual: the running thread, the parameter, `foreach` variables.
    pub places: Vec<Places>,
    /// By individual, then by trait: the values that it may have. Zero where no thread is meant.
    pub traits: Vec<u64>,
    /// By variable.
    pub variables: Vec<Range>,
    pub facts: Vec<Fact>,
    pub links: Vec<Link>,
    /// Variables known to be below the number of CPUs, by bit.
    pub below_cpus: u64,
    /// Individuals known to be allowed on this CPU, by bit.
    pub sighted: u64,
    /// Containers, by bit of their number, in which all threads are allowed on this CPU.
    pub allowed: u64,
    /// Which of the occasion's classes the parameter may be of, by bit.
    pub roles: u8,
    pub dispatched: bool,
    /// Grows with each arrival at a phase; not part of what is known.
    pub stamp: u64,
}

/// More facts than that are forgotten, oldest first.
pub const MOST_FACTS: usize = 8;

impl State {
    /// All containers empty, no thread, every variable zero.
    pub fn start(layout: &Layout) -> State {
        let mut variables = vec![Range::ZERO; layout.variable_count()];
        variables[layout.attributes_start()..].fill(Range::ALL);
        State {
            cells: vec![Cell { count: Count::NONE, cause: Cause::Entry }; layout.homes.len()],
            places: vec![Places::UNBOUND; layout.individual_count()],
            traits: vec![0; layout.individual_count() * layout.traits.len()],
            variables,
            facts: Vec::new(),
            links: Vec::new(),
            below_cpus: 0,
            sighted: 0,
            allowed: 0,
            roles: 0,
            dispatched: false,
            stamp: 0,
        }
    }

    // Reading

    pub fn count(&self, scene: &Scene, site: Site) -> Count {
        match site {
            Site::One(container) => self.cells[usize::from(container)].count,
            Site::Some(container) => self.any_element(scene, container),
            Site::Element(container, key) => self
                .facts
                .iter()
                .find(|fact| {
                    fact.container == container && self.same_key(fact.key, key) == Truth::Yes
                })
                .map_or_else(|| self.any_element(scene, container), |fact| fact.count),
        }
    }

    pub fn any_element(&self, scene: &Scene, container: u16) -> Count {
        let home = scene.layout.home(container);
        match home.reach {
            Reach::PerCpu => Count::both(Size::at_most(home.capacity)),
            _ => self.cells[usize::from(container)].count,
        }
    }

    /// Whether the sites are the same container.
    pub fn same_site(&self, scene: &Scene, left: Site, right: Site) -> Truth {
        let (a, b) = (left.container(), right.container());
        match (left, right) {
            _ if a != b => Truth::No,
            (Site::One(_), Site::One(_)) => Truth::Yes,
            (Site::Element(_, left), Site::Element(_, right)) => self.same_key(left, right),
            _ if scene.layout.home(a).reach == Reach::Array(1) => Truth::Yes,
            _ => Truth::Maybe,
        }
    }

    fn same_key(&self, left: Key, right: Key) -> Truth {
        let (left, right) = (self.normal(left), self.normal(right));
        let ranges = || self.key_range(left).apart(self.key_range(right));
        Truth::of(left == right, (left.variable == right.variable) || ranges())
    }

    /// A variable with one possible value is a constant.
    fn normal(&self, key: Key) -> Key {
        match key.variable.and_then(|variable| self.variables[usize::from(variable)].constant()) {
            Some(value) => Key { variable: None, offset: value.wrapping_add(key.offset) },
            None => key,
        }
    }

    pub fn key_range(&self, key: Key) -> Range {
        let offset = Range::exactly(key.offset);
        match key.variable {
            Some(variable) => Range::binary(
                crate::ir::BinaryOp::Add,
                self.variables[usize::from(variable)],
                offset,
            ),
            None => offset,
        }
    }

    // Learning

    /// Narrows the size; false if the state becomes impossible.
    #[must_use]
    pub fn learn_size(&mut self, scene: &Scene, site: Site, held: Size, seen: Size) -> bool {
        let filtered = scene.is_filtered(site.container());
        let old = self.count(scene, site);
        let new = old.meet(Count { held, seen }).consistent(filtered);
        if new.is_impossible() {
            return false;
        }
        if new == old {
            return true;
        }
        match site {
            Site::One(container) => self.cells[usize::from(container)].count = new,
            Site::Element(container, key) => self.set_fact(container, key, new),
            Site::Some(_) => {}
        }
        self.reduce(scene)
    }

    #[must_use]
    pub fn learn_seen(&mut self, scene: &Scene, site: Site, seen: Size) -> bool {
        self.learn_size(scene, site, Size::ANY, seen)
    }

    /// Narrows the places of an individual; false if the state becomes impossible.
    #[must_use]
    pub fn learn_places(&mut self, scene: &Scene, individual: usize, places: Places) -> bool {
        self.places[individual] = self.places[individual].and(places);
        self.places[individual].is_bound() && self.reduce(scene)
    }

    /// What individuals' places and containers' sizes say of each other; false if they contradict.
    #[must_use]
    pub fn reduce(&mut self, scene: &Scene) -> bool {
        let layout = scene.layout;
        let mut again = true;
        while again {
            again = false;
            for individual in 0..self.places.len() {
                let places = self.places[individual];
                if !places.is_bound() {
                    continue;
                }
                let mut left = places;
                for place in places.each() {
                    // Another CPU's container is not described by this CPU's size.
                    if let Some(&(container, false)) = layout.by_bit.get(place.bit() as usize)
                        && (self.cells[usize::from(container)].count.held.hi == 0
                            || self.is_taken(layout, individual, container))
                    {
                        left = left.without(place);
                    }
                }
                if !left.is_bound() {
                    return false;
                }
                again |= left != places;
                self.places[individual] = left;
                if let Some(container) = self.certain(layout, individual)
                    && self.cells[usize::from(container)].count.held.lo == 0
                {
                    let cell = &mut self.cells[usize::from(container)];
                    let filtered = scene.is_filtered(container);
                    let seen = if filtered { Size::ANY } else { Size::SOME };
                    cell.count =
                        cell.count.meet(Count { held: Size::SOME, seen }).consistent(filtered);
                    if cell.count.is_impossible() {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// The container in which the individual certainly sits.
    pub fn certain(&self, layout: &Layout, individual: usize) -> Option<u16> {
        let places = self.places[individual];
        if places.count() != 1 {
            return None;
        }
        let &(container, elsewhere) = layout.by_bit.get(places.bit() as usize)?;
        (layout.home(container).exact && !elsewhere).then_some(container)
    }

    /// Whether the only thread of the container is another individual. Only the running thread and
    /// the parameter are known to differ; a `foreach` variable may be either.
    fn is_taken(&self, layout: &Layout, individual: usize, container: u16) -> bool {
        let rival = match individual {
            RUNNING => OTHER,
            OTHER => RUNNING,
            _ => return false,
        };
        self.cells[usize::from(container)].count.held.hi == 1
            && self.certain(layout, rival) == Some(container)
    }

    fn set_fact(&mut self, container: u16, key: Key, count: Count) {
        let key = self.normal(key);
        let mut facts = std::mem::take(&mut self.facts);
        facts.retain(|fact| {
            fact.container != container || self.same_key(fact.key, key) != Truth::Yes
        });
        self.facts = facts;
        if self.facts.len() == MOST_FACTS {
            self.facts.remove(0);
        }
        self.facts.push(Fact { container, key, count });
    }

    // Changing

    /// Threads enter or leave; false if the state becomes impossible.
    #[must_use]
    pub fn change_size(&mut self, scene: &Scene, site: Site, change: Change, cause: Cause) -> bool {
        let container = site.container();
        let home = *scene.layout.home(container);
        let filtered = scene.is_filtered(container);
        let shift = |count: Count| count.shift(change, home.capacity).consistent(filtered);
        let weak = |count: Count| count.hull(shift(count));

        let new = shift(self.count(scene, site));
        for index in 0..self.facts.len() {
            let fact = self.facts[index];
            if self.same_site(scene, fact.site(), site) == Truth::Maybe {
                self.facts[index].count = weak(fact.count);
            }
        }
        let cell = self.cells[usize::from(container)].count;
        let cell = match (site, home.reach) {
            (Site::One(_), _) => new,
            (Site::Element(..), Reach::Array(_)) => cell.hull(new),
            _ => weak(cell),
        };
        self.cells[usize::from(container)] = Cell { count: cell, cause };
        if let Site::Element(_, key) = site {
            self.set_fact(container, key, new);
        }
        self.change_links(scene, site, change);
        !cell.is_impossible() && !new.is_impossible() && self.reduce(scene)
    }

    fn change_links(&mut self, scene: &Scene, changed: Site, change: Change) {
        let mut links = std::mem::take(&mut self.links);
        links.retain_mut(|link| {
            for site in link.sites.into_iter().flatten() {
                match self.same_site(scene, site, changed) {
                    Truth::No => {}
                    Truth::Yes if change.seen.0 == change.seen.1 => {
                        link.offset = link.offset.wrapping_sub(i64::from(change.seen.0));
                    }
                    _ => return false,
                }
            }
            true
        });
        self.links = links;
    }

    /// The variable takes a new value, of which only the range is known.
    pub fn assign(&mut self, variable: u16, range: Range) {
        self.facts.retain(|fact| fact.key.variable != Some(variable));
        self.links.retain(|link| {
            link.variable != variable
                && !link.sites.into_iter().flatten().any(|site| site.uses(variable))
        });
        self.variables[usize::from(variable)] = range;
        self.set_below_cpus(variable, false);
    }

    /// `variable = variable + step`.
    pub fn advance(&mut self, variable: u16, step: i64, range: Range) {
        let moved = |key: Key| match key.variable {
            Some(used) if used == variable => Key { offset: key.offset.wrapping_sub(step), ..key },
            _ => key,
        };
        for fact in &mut self.facts {
            fact.key = moved(fact.key);
        }
        for link in &mut self.links {
            if link.variable == variable {
                link.offset = link.offset.wrapping_add(step);
            }
            for site in link.sites.iter_mut().flatten() {
                if let Site::Element(_, key) = site {
                    *key = moved(*key);
                }
            }
        }
        self.variables[usize::from(variable)] = range;
        // Less than before, and less than the number of CPUs, unless it wrapped.
        let stays = step <= 0 && range != Range::ALL && self.is_below_cpus(variable);
        self.set_below_cpus(variable, stays);
    }

    /// `variable = original`, another variable.
    pub fn copy(&mut self, variable: u16, original: u16) {
        if variable == original {
            return;
        }
        self.assign(variable, self.variables[usize::from(original)]);
        for index in 0..self.facts.len() {
            let fact = self.facts[index];
            if fact.key.variable == Some(original) && self.facts.len() < MOST_FACTS {
                self.facts.push(Fact { key: Key { variable: Some(variable), ..fact.key }, ..fact });
            }
        }
        for index in 0..self.links.len() {
            let link = self.links[index];
            if link.variable == original {
                self.links.push(Link { variable, ..link });
            }
        }
        self.set_below_cpus(variable, self.is_below_cpus(original));
    }

    pub fn is_below_cpus(&self, variable: u16) -> bool {
        variable < 64 && self.below_cpus >> variable & 1 == 1
    }

    pub fn set_below_cpus(&mut self, variable: u16, below: bool) {
        if variable < 64 {
            self.below_cpus = self.below_cpus & !(1 << variable) | u64::from(below) << variable;
        }
    }

    /// Forgets what the locals of a handler are, and gives them new values. What individuals'
    /// attributes are is known inside one handler only: the application may assign them in between.
    pub fn forget_locals(&mut self, layout: &Layout, values: Range) {
        self.variables[layout.global_count..layout.attributes_start()].fill(values);
        self.variables[layout.attributes_start()..].fill(Range::ALL);
        self.facts.clear();
        self.links.clear();
        self.below_cpus = 0;
        self.sighted = 0;
        self.allowed = 0;
        self.forget_visited(layout);
    }

    /// `foreach` variables name no threads any more.
    pub fn forget_visited(&mut self, layout: &Layout) {
        (super::layout::FIRST_VISITED..self.places.len())
            .for_each(|individual| self.unbind(layout, individual));
    }

    /// The individual names no thread any more.
    pub fn unbind(&mut self, layout: &Layout, individual: usize) {
        self.places[individual] = Places::UNBOUND;
        self.traits_of_mut(individual).fill(0);
        self.forget_attributes(layout, individual);
    }

    /// The individual may be another thread than before.
    pub fn forget_attributes(&mut self, layout: &Layout, individual: usize) {
        for variable in layout.attributes_of(individual) {
            self.assign(variable as u16, Range::ALL);
        }
    }

    fn trait_count(&self) -> usize {
        self.traits.len() / self.places.len()
    }

    pub fn traits_of(&self, individual: usize) -> &[u64] {
        let count = self.trait_count();
        &self.traits[individual * count..][..count]
    }

    pub fn traits_of_mut(&mut self, individual: usize) -> &mut [u64] {
        let count = self.trait_count();
        &mut self.traits[individual * count..][..count]
    }

    /// The individual that is the first thread of the site, where that is certain.
    pub fn only_thread(&self, scene: &Scene, site: Site) -> Option<usize> {
        let Site::One(container) = site else { return None };
        if self.cells[usize::from(container)].count.held.hi > 1 {
            return None;
        }
        (0..self.places.len())
            .find(|&individual| self.certain(scene.layout, individual) == Some(container))
    }

    /// Whether each thread in the container may certainly run on this CPU.
    pub fn holds_allowed(&self, scene: &Scene, container: u16) -> bool {
        scene.is_filtered(container) || container < 64 && self.allowed >> container & 1 == 1
    }

    /// A thread enters the container.
    pub fn note_allowed(&mut self, container: u16, allowed: bool) {
        if container < 64 {
            let alone = self.cells[usize::from(container)].count.held.hi == 0;
            let before = self.allowed >> container & 1 == 1;
            self.allowed = self.allowed & !(1 << container)
                | u64::from(allowed && (alone || before)) << container;
        }
    }
}
