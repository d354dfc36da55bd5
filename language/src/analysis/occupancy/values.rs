//! What expressions mean in a [`State`]: the values that they may have, the containers and threads
//! that they speak of.

use super::facts::{Key, Site};
use super::lattice::{Places, Range, Truth};
use super::layout::{OTHER, RUNNING, Reach, number};
use super::state::State;
use super::walker::Walker;
use crate::engine::protocol::Cpus;
use crate::ir::*;

/// Which thread is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meant {
    Individual(usize),
    First(Site),
}

/// More CPUs than any machine has.
pub const MOST_CPUS: i64 = 1 << 16;

impl Walker<'_> {
    /// The values of an integer expression, given that its checks hold.
    pub fn range(&self, state: &State, expr: ExprId) -> Range {
        let node = &self.program.exprs[expr];
        if node.ty == Type::Float {
            return Range::ALL;
        }
        match node.kind {
            ExprKind::Constant(Value::Int(value)) => Range::exactly(value),
            ExprKind::Constant(Value::Float(_)) | ExprKind::Now => Range::ALL,
            ExprKind::Read(place) => match (self.read(state, &place), self.trait_read(state, expr))
            {
                (Some(variable), _) => state.variables[usize::from(variable)],
                (None, Some((individual, index))) => {
                    values_range(state.traits_of(individual)[index])
                }
                (None, None) => self.declared(&place),
            },
            ExprKind::Size(of) => state.count(&self.scene, self.site(state, &of)).seen.range(),
            ExprKind::Same(left, right) => self.same(state, &left, &right).range(),
            ExprKind::Cpu if self.one_cpu() => Range::ZERO,
            ExprKind::Cpus if self.one_cpu() => Range::ONE,
            ExprKind::Cpu => Range { lo: 0, hi: MOST_CPUS - 1 },
            ExprKind::Cpus => Range { lo: 1, hi: MOST_CPUS },
            ExprKind::Unary(op, operand) => match self.is_integer(operand) {
                true => Range::unary(op, self.range(state, operand)),
                false => default_range(op == UnaryOp::Not),
            },
            ExprKind::Binary(op, left, right) => match self.is_integer(left) {
                true => Range::binary(op, self.range(state, left), self.range(state, right)),
                false => default_range(is_comparison(op)),
            },
            ExprKind::And(left, right) => match (self.truth(state, left), self.truth(state, right))
            {
                (Truth::No, _) | (_, Truth::No) => Range::ZERO,
                (Truth::Yes, Truth::Yes) => Range::ONE,
                _ => Range::TRUTH,
            },
            ExprKind::Or(left, right) => {
                match (self.truth(state, left), self.truth(state, right)) {
                    (Truth::Yes, _) | (_, Truth::Yes) => Range::ONE,
                    (Truth::No, Truth::No) => Range::ZERO,
                    _ => Range::TRUTH,
                }
            }
            ExprKind::Convert(operand) if self.is_integer(operand) => self.range(state, operand),
            ExprKind::Convert(_) => Range::ALL,
            ExprKind::Let { temporary, value, body } => {
                let mut state = state.clone();
                self.keep(&mut state, temporary, value);
                self.range(&state, body)
            }
        }
    }

    /// The temporary of a `Let` takes its value.
    pub fn keep(&self, state: &mut State, temporary: LocalId, value: ExprId) {
        if let Some(variable) = self.variable(&Place::Local(temporary, None)) {
            self.assign_number(variable, value, state);
        }
    }

    fn truth(&self, state: &State, expr: ExprId) -> Truth {
        if self.is_integer(expr) { self.range(state, expr).truth() } else { Truth::Maybe }
    }

    pub fn is_integer(&self, expr: ExprId) -> bool {
        self.program.exprs[expr].ty != Type::Float
    }

    pub fn one_cpu(&self) -> bool {
        self.scene.layout.cpus == Cpus::One
    }

    /// The variable that a place is, if it is one that is followed.
    pub fn variable(&self, place: &Place) -> Option<u16> {
        match *place {
            Place::Local(local, None) => self.scene.layout.locals.get(local).copied(),
            Place::Global(global, None) => self.scene.layout.globals.get(global).copied(),
            Place::Attribute(ThreadExpr { kind: ThreadKind::Name(name), .. }, attribute) => {
                self.scene.layout.attribute_of(self.individual(name), attribute)
            }
            _ => None,
        }
    }

    /// What is known of a place that is not followed.
    fn declared(&self, place: &Place) -> Range {
        let terms = match *place {
            Place::Global(global, _) => self.program.globals[global].terms,
            Place::Attribute(_, attribute) => self.program.attributes[attribute].terms,
            Place::Local(..) => Terms::default(),
        };
        terms.range.map_or(Range::ALL, |(lo, hi)| Range { lo, hi })
    }

    /// The same where the state knows which thread is the first of a container.
    pub fn read(&self, state: &State, place: &Place) -> Option<u16> {
        match place {
            Place::Attribute(thread, attribute) => {
                let layout = self.scene.layout;
                layout.indexing.contains(attribute).then_some(())?;
                layout.attribute_of(self.known(state, thread)?, *attribute)
            }
            place => self.variable(place),
        }
    }

    /// The individual that a thread expression means, if it is one of those that are followed.
    pub fn known(&self, state: &State, thread: &ThreadExpr) -> Option<usize> {
        match self.meant(state, thread) {
            Meant::Individual(individual) => Some(individual),
            Meant::First(site) => state.only_thread(&self.scene, site),
        }
        .filter(|&individual| state.places[individual].is_bound())
    }

    /// The individual and the trait that an expression reads, if it is known whose.
    pub fn trait_read(&self, state: &State, expr: ExprId) -> Option<(usize, usize)> {
        let ExprKind::Read(Place::Attribute(thread, attribute)) = self.program.exprs[expr].kind
        else {
            return None;
        };
        let index = self.scene.layout.traits.iter().position(|each| each.attribute == attribute)?;
        Some((self.known(state, &thread)?, index))
    }

    pub fn read_variable(&self, expr: ExprId) -> Option<u16> {
        match self.program.exprs[expr].kind {
            ExprKind::Read(place) => self.variable(&place),
            ExprKind::Convert(operand) if self.is_integer(expr) && self.is_integer(operand) => {
                self.read_variable(operand)
            }
            _ => None,
        }
    }

    /// The container that is meant, given that its index is in range.
    pub fn site(&self, state: &State, of: &ContainerRef) -> Site {
        let container = number(of.container);
        let Some(index) = of.index else { return Site::One(container) };
        let per_cpu = match self.scene.layout.home(container).reach {
            Reach::Array(_) => false,
            Reach::PerCpu => true,
            // Only per-CPU containers have an index without being arrays: on one CPU, that of CPU
            // 0.
            Reach::Shared | Reach::Local => return Site::One(container),
        };
        if per_cpu && matches!(self.program.exprs[index.at].kind, ExprKind::Cpu) {
            return Site::One(container);
        }
        self.key(state, index.at).map_or(Site::Some(container), |key| Site::Element(container, key))
    }

    fn key(&self, state: &State, index: ExprId) -> Option<Key> {
        if let Some(value) = self.range(state, index).constant() {
            return Some(Key { variable: None, offset: value });
        }
        if let Some(variable) = self.read_variable(index) {
            return Some(Key { variable: Some(variable), offset: 0 });
        }
        let ExprKind::Binary(op, left, right) = self.program.exprs[index].kind else { return None };
        let offset = self.range(state, right).constant()?;
        let variable = Some(self.read_variable(left)?);
        match op {
            BinaryOp::Add => Some(Key { variable, offset }),
            BinaryOp::Subtract => Some(Key { variable, offset: offset.wrapping_neg() }),
            _ => None,
        }
    }

    /// The sizes of which an expression is the sum, if it is one.
    pub fn sum(&self, state: &State, expr: ExprId) -> Option<([Option<Site>; 3], i64)> {
        match self.program.exprs[expr].kind {
            ExprKind::Size(of) => match self.site(state, &of) {
                Site::Some(_) => None,
                site => Some(([Some(site), None, None], 0)),
            },
            ExprKind::Read(place) => {
                let variable = self.variable(&place)?;
                let link = state.links.iter().find(|link| link.variable == variable)?;
                Some((link.sites, link.offset))
            }
            ExprKind::Convert(operand) if self.is_integer(expr) && self.is_integer(operand) => {
                self.sum(state, operand)
            }
            ExprKind::Binary(BinaryOp::Add, left, right) => {
                if let Some(value) = self.range(state, right).constant() {
                    let (sites, offset) = self.sum(state, left)?;
                    return Some((sites, offset.wrapping_add(value)));
                }
                let (mut sites, offset) = self.sum(state, left)?;
                let (more, add) = self.sum(state, right)?;
                for site in more.into_iter().flatten() {
                    *sites.iter_mut().find(|slot| slot.is_none())? = Some(site);
                }
                Some((sites, offset.wrapping_add(add)))
            }
            ExprKind::Binary(BinaryOp::Subtract, left, right) => {
                let value = self.range(state, right).constant()?;
                let (sites, offset) = self.sum(state, left)?;
                Some((sites, offset.wrapping_sub(value)))
            }
            _ => None,
        }
    }

    // Thread names

    /// Which individual or container a thread expression means, without looking at its check.
    pub fn meant(&self, state: &State, thread: &ThreadExpr) -> Meant {
        match thread.kind {
            ThreadKind::Name(name) => Meant::Individual(self.individual(name)),
            ThreadKind::First(of) => Meant::First(self.site(state, &of)),
        }
    }

    pub fn individual(&self, name: NameId) -> usize {
        self.scene.layout.visited.get(name).map_or(self.parameter, |&visited| usize::from(visited))
    }

    pub fn same(&self, state: &State, left: &ThreadExpr, right: &ThreadExpr) -> Truth {
        let scene = &self.scene;
        match (self.meant(state, left), self.meant(state, right)) {
            (Meant::Individual(a), Meant::Individual(b)) => {
                let alive =
                    |individual: usize| !state.places[individual].overlaps(Places::DESTROYED);
                let apart = matches!((a, b), (RUNNING, OTHER) | (OTHER, RUNNING))
                    || !state.places[a].overlaps(state.places[b]);
                Truth::of(a == b, alive(a) && alive(b) && apart)
            }
            (Meant::Individual(a), Meant::First(site))
            | (Meant::First(site), Meant::Individual(a)) => {
                let places = state.places[a];
                let away = !places.overlaps(self.places_of(site).with(Places::DESTROYED));
                Truth::of(false, away)
            }
            (Meant::First(a), Meant::First(b)) => {
                let (here, there) = (state.count(scene, a).seen, state.count(scene, b).seen);
                match state.same_site(scene, a, b) {
                    Truth::Yes => Truth::Yes,
                    Truth::No => {
                        Truth::of(here.hi == 0 && there.hi == 0, here.lo > 0 || there.lo > 0)
                    }
                    Truth::Maybe => Truth::Maybe,
                }
            }
        }
    }
}

/// The least range with all values of a trait.
fn values_range(values: u64) -> Range {
    Range { lo: i64::from(values.trailing_zeros()), hi: 63 - i64::from(values.leading_zeros()) }
}

fn default_range(is_truth: bool) -> Range {
    if is_truth { Range::TRUTH } else { Range::ALL }
}

pub fn is_comparison(op: BinaryOp) -> bool {
    use BinaryOp::*;
    matches!(op, Equal | NotEqual | Less | Greater | LessEqual | GreaterEqual)
}
