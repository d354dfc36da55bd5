//! What the kernel engine cannot have, found before anything is generated: floats, verbatim text,
//! what its nodes cannot tell a cluster, and more than its verifier or its memory would take. A
//! scheduler within these limits loads (docs/lab.md reports what is known of that:
//! `random-schedulers`).

use crate::ir::visit::{self, Visitor};
use crate::ir::{
    BinaryOp, Extent, Membership, NodeProperty, Place, Program, Statement, StatementKind, Type,
    Update,
};
use crate::source::{SourceMap, Span};

/// Bytes that a scheduler's variables and containers may take; threads need room beside them.
const LARGEST: u64 = 16 << 20;

/// Bytes of one element of a container, and of a scalar.
const CONTAINER: u64 = 64;
const SCALAR: u64 = 8;

/// Which limit a scheduler exceeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    Verbatim(Span),
    Float(Span),
    /// A division of a variable that other nodes see, too.
    Division(Span),
    /// A shared float, or an operation of floats on a shared int, where writes are merged as whole
    /// numbers.
    SharedFloat(Span),
    /// The master, or another node, suspends the threads of that container.
    Suspended(String),
    /// Bytes of its variables and containers.
    Size(u64),
}

/// The first limit of the kernel engine that the scheduler exceeds.
pub fn kernel(program: &Program) -> Option<Limit> {
    if let Some(&span) = program.verbatim.first() {
        return Some(Limit::Verbatim(span));
    }
    if let Some(span) = first_float(program) {
        return Some(Limit::Float(span));
    }
    if let Some(span) = shared_division(program) {
        return Some(Limit::Division(span));
    }
    let size = size(program);
    (size > LARGEST).then_some(Limit::Size(size))
}

/// The first limit of the embedded engine that the scheduler exceeds; only those of nodes have any.
pub fn embedded(program: &Program) -> Option<Limit> {
    let remotes = program.membership.remotes.iter();
    let shared = remotes.map(|it| &program.globals[it.global]);
    let float = shared.filter(|it| it.ty == Type::Float).map(|it| it.span).next();
    let updates = updates(program, |place| is_shared(program, place));
    let mixed = updates.iter().find(|(update, _)| update.mixed).map(|(_, span)| *span);
    let float = float.or(mixed).map(Limit::SharedFloat);
    float.or_else(|| shared_division(program).map(Limit::Division))
}

fn is_shared(program: &Program, place: &Place) -> bool {
    match place {
        Place::Global(id, None) => program.membership.remotes.iter().any(|it| it.global == *id),
        _ => false,
    }
}

fn shared_division(program: &Program) -> Option<Span> {
    division(program, |place| is_shared(program, place))
}

/// The first limit of the kernel and the embedded engine that a node exceeds because of what the
/// master and other nodes, `others`, do to it.
pub fn node(node: &Program, others: &[&Program]) -> Option<Limit> {
    let has = |name: &String| node.containers.values().any(|container| container.name == *name);
    let suspended = others.iter().find_map(|other| {
        let membership = &other.membership;
        let properties = membership.properties.iter().map(|(_, property)| property);
        let properties = properties.chain(membership.remotes.iter().map(|it| &it.property));
        let mut names = properties.filter_map(|property| match property {
            NodeProperty::Suspended(name) => Some(name),
            _ => None,
        });
        names.find(|name| has(name)).cloned()
    });
    let divided = || {
        others.iter().find_map(|other| {
            let Membership { properties, remotes, .. } = &other.membership;
            division(other, |place| match place {
                Place::Attribute(_, id) => properties.iter().any(|(it, _)| it == id),
                Place::Global(id, None) => {
                    remotes.iter().any(|it| it.global == *id && it.node.is_some())
                }
                _ => false,
            })
        })
    };
    suspended.map(Limit::Suspended).or_else(|| divided().map(Limit::Division))
}

/// Where a place is divided, or becomes the remainder of a division.
fn division(program: &Program, place: impl Fn(&Place) -> bool) -> Option<Span> {
    let divides = |op| matches!(op, BinaryOp::Divide | BinaryOp::Remainder);
    let mut updates = updates(program, place).into_iter();
    updates.find(|(update, _)| divides(update.operation)).map(|(_, span)| span)
}

/// What is done to such places, and where.
fn updates(program: &Program, place: impl Fn(&Place) -> bool) -> Vec<(Update, Span)> {
    struct Updates<F>(F, Vec<(Update, Span)>);
    impl<F: Fn(&Place) -> bool> Visitor for Updates<F> {
        fn statement(&mut self, program: &Program, statement: &Statement) {
            let StatementKind::Assign { place, value } = &statement.kind else { return };
            let update = program.update(place, *value).filter(|_| (self.0)(place));
            self.1.extend(update.map(|update| (update, statement.span)));
        }
    }
    let mut found = Updates(place, Vec::new());
    program.handlers.iter().for_each(|handler| visit::handler(program, handler, &mut found));
    found.1
}

impl Limit {
    /// One sentence without a full stop, with the place.
    pub fn in_words(&self, sources: &SourceMap) -> String {
        match self {
            Limit::Verbatim(span) => format!(
                "verbatim text at {} is for programs in C, and cannot run in the kernel",
                sources.place(*span)
            ),
            Limit::Float(span) => format!(
                "the kernel has no floats: see `{}` at {}",
                sources.slice(*span),
                sources.place(*span)
            ),
            Limit::Division(span) => format!(
                "a node of this engine keeps what is done to a variable that others see as one \
                 factor and one sum, so it may be set, added to and multiplied; it is divided at \
                 {}",
                sources.place(*span)
            ),
            Limit::SharedFloat(span) => format!(
                "a node of this engine shares whole numbers: see `{}` at {}",
                sources.slice(*span),
                sources.place(*span)
            ),
            Limit::Suspended(container) => format!(
                "a node of this engine cannot suspend the threads of `{container}` by a command"
            ),
            Limit::Size(size) => format!(
                "its arrays take {} MB; the kernel engine has room for {} MB",
                size >> 20,
                LARGEST >> 20
            ),
        }
    }
}

fn first_float(program: &Program) -> Option<Span> {
    let globals = program.globals.values().map(|it| (it.ty, it.span));
    let attributes = program.attributes.values().map(|it| (it.ty, it.span));
    let locals = program.locals.values().map(|it| (it.ty, it.span));
    let exprs = program.exprs.values().map(|it| (it.ty, it.span));
    let floats =
        globals.chain(attributes).chain(locals).chain(exprs).filter(|(ty, _)| *ty == Type::Float);
    floats.map(|(_, span)| span).min_by_key(|span| (span.source, span.start))
}

fn size(program: &Program) -> u64 {
    let elements = |extent: Extent| match extent {
        Extent::Array(length) => u64::from(length),
        Extent::One | Extent::PerCpu => 1,
    };
    let globals: u64 = program.globals.values().map(|it| elements(it.extent) * SCALAR).sum();
    let containers: u64 =
        program.containers.values().map(|it| elements(it.extent) * CONTAINER).sum();
    let locals: u64 =
        program.locals.values().map(|it| u64::from(it.length.unwrap_or(1)) * SCALAR).sum();
    globals + containers + locals
}
