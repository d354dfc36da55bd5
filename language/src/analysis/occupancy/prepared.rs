//! What the analysis knows of a program before it follows a path, the same for all engines.

use super::lifetimes::Lifetimes;
use super::relevance::Relevance;
use crate::ir::*;

pub struct Prepared {
    /// Whether an expression has a check in it, by the number of its id.
    pub has_check: Vec<bool>,
    /// Attributes that are followed: those that only ever hold a few small constants, like a
    /// thread's state.
    pub traits: Vec<Trait>,
    /// Other attributes that are followed: those by which arrays are indexed.
    pub indexing: Vec<AttributeId>,
    /// Ascending; growing ranges of integers come to rest at them.
    pub thresholds: Vec<i64>,
    pub relevance: Relevance,
    pub lifetimes: Lifetimes,
}

impl Prepared {
    pub fn new(program: &Program) -> Prepared {
        let traits = traits(program);
        let mut indexing = indexing(program);
        indexing.retain(|attribute| traits.iter().all(|each| each.attribute != *attribute));
        let relevance = Relevance::of(program, |attribute| {
            indexing.contains(&attribute) || traits.iter().any(|each| each.attribute == attribute)
        });
        Prepared {
            has_check: expressions_with_checks(program),
            thresholds: thresholds(program),
            lifetimes: Lifetimes::of(program, &relevance),
            traits,
            indexing,
            relevance,
        }
    }
}

/// For each expression whether there may be a check in it, by the number of its id.
fn expressions_with_checks(program: &Program) -> Vec<bool> {
    let mut checked: Vec<bool> = Vec::with_capacity(program.exprs.len());
    for (_, expr) in program.exprs.iter() {
        // Lowering makes operands before what is made of them; if it did not, there may be a check.
        let has = |operand: ExprId| {
            checked.get(u32::from(operand.into_raw()) as usize).copied().unwrap_or(true)
        };
        let in_container = |of: &ContainerRef| of.index.is_some();
        let in_thread = |thread: &ThreadExpr| {
            thread.check.is_some()
                || matches!(thread.kind, ThreadKind::First(of) if in_container(&of))
        };
        let found = match &expr.kind {
            ExprKind::Constant(_) | ExprKind::Now | ExprKind::Cpu | ExprKind::Cpus => false,
            ExprKind::Read(Place::Local(_, index) | Place::Global(_, index)) => index.is_some(),
            ExprKind::Read(Place::Attribute(thread, _)) => in_thread(thread),
            ExprKind::Size(of) => in_container(of),
            ExprKind::Same(left, right) => in_thread(left) || in_thread(right),
            ExprKind::Unary(_, operand) | ExprKind::Convert(operand) => has(*operand),
            ExprKind::Binary(_, left, right)
            | ExprKind::And(left, right)
            | ExprKind::Or(left, right) => has(*left) || has(*right),
            ExprKind::Let { value, body, .. } => has(*value) || has(*body),
        };
        checked.push(found);
    }
    checked
}

/// An attribute whose values are all known: a set of values is a set of bits.
#[derive(Clone, Copy, Debug)]
pub struct Trait {
    pub attribute: AttributeId,
    /// Its value in a new thread.
    pub initial: u64,
    /// All that are ever assigned.
    pub values: u64,
}

/// Traits followed at once.
pub const MOST_TRAITS: usize = 8;

/// A small constant as a set of one.
fn value_bit(value: Value) -> Option<u64> {
    match value {
        Value::Int(value @ 0..64) => Some(1 << value),
        _ => None,
    }
}

fn traits(program: &Program) -> Vec<Trait> {
    // Verbatim text may assign anything.
    if !program.verbatim.is_empty() {
        return Vec::new();
    }
    let candidates = program
        .attributes
        .iter()
        .filter(|(_, attribute)| !attribute.import && attribute.ty == Type::Int);
    let candidates = candidates.filter_map(|(id, attribute)| {
        let initial = value_bit(attribute.initial)?;
        Some(Trait { attribute: id, initial, values: initial })
    });
    let mut assigned = Assigned { traits: candidates.collect() };
    for handler in &program.handlers {
        visit::handler(program, handler, &mut assigned);
    }
    let invariants = program.invariants.iter().map(|invariant| &invariant.routine);
    for routine in [&program.prologue, &program.thread_prologue].into_iter().chain(invariants) {
        visit::block(program, &routine.body, &mut assigned);
    }
    let mut traits = assigned.traits;
    traits.retain(|each| each.values.count_ones() > 1);
    traits.splice(0..0, family(program));
    traits.truncate(MOST_TRAITS);
    traits
}

/// In a master: the family of a node, any of those that there are.
fn family(program: &Program) -> Option<Trait> {
    let properties = &program.membership.properties;
    let (attribute, _) = properties.iter().find(|(_, of)| *of == NodeProperty::Family)?;
    let all = match program.membership.families.len() {
        count @ 1..64 => (1 << count) - 1,
        64 => u64::MAX,
        _ => return None,
    };
    Some(Trait { attribute: *attribute, initial: all, values: all })
}

/// The integer attributes that indices are computed from, at most [`MOST_INDEXING`].
fn indexing(program: &Program) -> Vec<AttributeId> {
    struct Read(Vec<AttributeId>);
    impl visit::Visitor for Read {
        fn place_read(&mut self, program: &Program, place: &Place) {
            if let Place::Attribute(_, attribute) = place
                && program.attributes[*attribute].ty != Type::Float
                // What is read of an import with a range is not what was assigned.
                && program.attributes[*attribute].terms.range.is_none()
                && !self.0.contains(attribute)
            {
                self.0.push(*attribute);
            }
        }
    }
    struct Indices(Read);
    impl visit::Visitor for Indices {
        fn container(&mut self, program: &Program, container: &ContainerRef) {
            container.index.iter().for_each(|index| visit::expr(program, index.at, &mut self.0));
        }

        fn place_read(&mut self, program: &Program, place: &Place) {
            if let Place::Local(_, Some(index)) | Place::Global(_, Some(index)) = place {
                visit::expr(program, index.at, &mut self.0);
            }
        }

        fn place_written(&mut self, program: &Program, place: &Place) {
            self.place_read(program, place);
        }
    }
    let mut indices = Indices(Read(Vec::new()));
    for handler in &program.handlers {
        visit::handler(program, handler, &mut indices);
    }
    let mut read = indices.0.0;
    read.truncate(MOST_INDEXING);
    read
}

/// Attributes in indices that are followed at once.
const MOST_INDEXING: usize = 4;

struct Assigned {
    traits: Vec<Trait>,
}

impl visit::Visitor for Assigned {
    fn statement(&mut self, program: &Program, statement: &Statement) {
        let StatementKind::Assign { place: Place::Attribute(_, attribute), value } = statement.kind
        else {
            return;
        };
        let bit = match program.exprs[value].kind {
            ExprKind::Constant(value) => value_bit(value),
            _ => None,
        };
        match bit {
            Some(bit) => {
                self.traits
                    .iter_mut()
                    .filter(|each| each.attribute == attribute)
                    .for_each(|each| each.values |= bit);
            }
            None => self.traits.retain(|each| each.attribute != attribute),
        }
    }
}

/// The numbers that a program speaks of, with their neighbours.
fn thresholds(program: &Program) -> Vec<i64> {
    let constants = program.exprs.iter().filter_map(|(_, expr)| match expr.kind {
        ExprKind::Constant(Value::Int(value)) => Some(value),
        _ => None,
    });
    let initial = program.globals.iter().filter_map(|(_, global)| match global.initial {
        Value::Int(value) => Some(value),
        Value::Float(_) => None,
    });
    let lengths = program.containers.iter().filter_map(|(_, container)| match container.extent {
        Extent::Array(length) => Some(i64::from(length)),
        _ => None,
    });
    let mut thresholds: Vec<i64> = constants
        .chain(initial)
        .chain(lengths)
        .chain([0])
        .flat_map(|value| [value.saturating_sub(1), value, value.saturating_add(1)])
        .collect();
    thresholds.sort_unstable();
    thresholds.dedup();
    // Each threshold is a step that a loop's analysis may take.
    if thresholds.len() > 64 {
        let all = thresholds.len();
        let near_zero = |value: i64| (-1..=16).contains(&value);
        let mut kept = 0;
        thresholds.retain(|&value| {
            kept += 1;
            near_zero(value) || kept % all.div_ceil(32) == 0
        });
    }
    thresholds
}
