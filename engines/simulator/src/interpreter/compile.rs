//! Compiles the IR to the compact form: resolves every name to its slot, once, before anything
//! runs.
//!
//! The result means what the IR says, check by check; nothing is reordered and no check is left
//! out.

mod place;
mod share;

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;

use attune_language::ir::{
    self, BinaryOp, ContainerKind, ContainerRef, ExprId, ExprKind, Extent, First, LocalId, Place,
    Program, Returned, StatementKind, Test, ThreadExpr, ThreadKind, Type, UnaryOp,
};

use super::Refusal;
use super::code::*;
use super::containers::Discipline;
use super::layout::{Layout, bits, length, raw};

/// What the compact form does besides its work.
#[derive(Clone, Copy)]
pub(super) struct Extras {
    /// Run invariants.
    pub invariants: bool,
    /// Note what was reached.
    pub notes: bool,
}

pub(super) fn compile(program: &Program, cpus: u32, extras: Extras) -> Result<Code, Refusal> {
    let numbers = if extras.notes {
        let place =
            |(number, statement): (usize, &ir::Statement)| (address(statement), number as u32);
        statements(program).into_iter().enumerate().map(place).collect()
    } else {
        HashMap::new()
    };
    let watch = extras.invariants && !program.invariants.is_empty();
    let layout = Layout::new(program, cpus)?;
    Ok(Compiler {
        program,
        layout,
        numbers,
        watch,
        notes: extras.notes,
        in_prologue: Cell::new(false),
    }
    .code())
}

/// Every statement of a program, outer before inner.
pub(super) fn statements(program: &Program) -> Vec<&ir::Statement> {
    let parts =
        program.handlers.iter().flat_map(|handler| &handler.parts).map(|part| &part.routine);
    let invariants = program.invariants.iter().map(|invariant| &invariant.routine);
    let mut found = Vec::new();
    for routine in
        [&program.prologue, &program.thread_prologue].into_iter().chain(parts).chain(invariants)
    {
        collect(&routine.body, &mut found);
    }
    found
}

fn collect<'p>(block: &'p ir::Block, found: &mut Vec<&'p ir::Statement>) {
    for statement in &block.statements {
        found.push(statement);
        match &statement.kind {
            StatementKind::If { then, otherwise, .. } => {
                collect(then, found);
                collect(otherwise, found);
            }
            StatementKind::Loop(each) => {
                collect(&each.prelude, found);
                collect(&each.body, found);
                collect(&each.step, found);
            }
            StatementKind::Foreach { body, .. } => collect(body, found),
            _ => {}
        }
    }
}

fn address(statement: &ir::Statement) -> usize {
    std::ptr::from_ref(statement) as usize
}

struct Compiler<'p> {
    program: &'p Program,
    layout: Layout,
    /// By the statement's address; empty unless statements are noted.
    numbers: HashMap<usize, u32>,
    watch: bool,
    notes: bool,
    /// Initial values see the imports' defaults.
    in_prologue: Cell<bool>,
}

impl Compiler<'_> {
    fn code(&self) -> Code {
        let program = self.program;
        let mut globals = Vec::new();
        for global in program.globals.values() {
            let slots = self.layout.slots(global.extent) as usize;
            globals.resize(globals.len() + slots, bits(global.initial));
        }
        let mut code = Code {
            handlers: Vec::new(),
            prologue: self.prologue(&program.prologue),
            thread_prologue: self.prologue(&program.thread_prologue),
            invariants: if self.watch { self.invariants() } else { Vec::new() },
            globals,
            containers: self.containers(),
            attributes: program
                .attributes
                .values()
                .map(|attribute| bits(attribute.initial))
                .collect(),
            locals: self.layout.local_slots,
            names: program.names.len() as u32,
        };
        code.handlers.resize_with(attune_language::engine::event::Event::ALL.len(), || None);
        for handler in &program.handlers {
            code.handlers[handler.event as usize] = Some(Handler {
                event: handler.event,
                parts: handler.parts.iter().map(|part| self.routine(&part.routine)).collect(),
                stored: handler.stored,
                emptied: handler
                    .emptied
                    .iter()
                    .map(|&(id, check)| (self.layout.container(id), check))
                    .collect(),
            });
        }
        code
    }

    fn containers(&self) -> Vec<ContainerSlot> {
        let mut slots = Vec::new();
        for (id, container) in self.program.containers.iter() {
            let discipline = match container.kind {
                ContainerKind::Threadref | ContainerKind::Queue => Discipline::Back,
                ContainerKind::Stack => Discipline::Front,
                ContainerKind::PQueue => Discipline::SortedBehind,
                ContainerKind::PStack => Discipline::SortedBefore,
            };
            let key = container.sort.map(|sort| Key {
                attribute: raw(sort.by) as u32,
                range: self.program.attributes[sort.by].terms.range.unwrap_or((i64::MIN, i64::MAX)),
                order: match (self.program.attributes[sort.by].ty, sort.first) {
                    (Type::Float, First::Lowest) => KeyOrder::LowestFloat,
                    (Type::Float, First::Highest) => KeyOrder::HighestFloat,
                    (_, First::Lowest) => KeyOrder::LowestInt,
                    (_, First::Highest) => KeyOrder::HighestInt,
                },
            });
            let shared = container.is_shared();
            let element = |element| ContainerSlot {
                discipline,
                key,
                shared,
                container: raw(id) as u32,
                element,
            };
            slots.extend((0..self.layout.slots(container.extent)).map(element));
        }
        slots
    }

    fn invariants(&self) -> Vec<Invariant> {
        let invariant = |each: &ir::Invariant| {
            let base = self.layout.container(each.container);
            let slots = self.layout.slots(self.program.containers[each.container].extent);
            Invariant {
                containers: base..base + slots,
                routine: self.routine(&each.routine),
                check: each.check,
            }
        };
        self.program.invariants.iter().map(invariant).collect()
    }

    fn prologue(&self, routine: &ir::Routine) -> Routine {
        self.in_prologue.set(true);
        let compiled = self.routine(routine);
        self.in_prologue.set(false);
        compiled
    }

    fn routine(&self, routine: &ir::Routine) -> Routine {
        // The locals of a routine are declared together, so that their slots follow each other;
        // should they not, zeroing those between them harms nothing, since no other routine is
        // running.
        let ranges = || routine.locals.iter().map(|&local| self.local_slots(local));
        let start = ranges().map(|range| range.start).min().unwrap_or(0);
        let end = ranges().map(|range| range.end).max().unwrap_or(0);
        Routine {
            parameter: routine.parameter.map(|name| raw(name) as u32),
            locals: start..end,
            body: self.block(&routine.body),
        }
    }

    fn local_slots(&self, local: LocalId) -> Range<u32> {
        let base = self.layout.local(local);
        base..base + length(&self.program.locals[local])
    }

    fn block(&self, block: &ir::Block) -> Vec<Statement> {
        block.statements.iter().map(|statement| self.statement(statement)).collect()
    }

    fn statement(&self, statement: &ir::Statement) -> Statement {
        let mut compiled = self.plain_statement(&statement.kind);
        if self.watch && may_change(&statement.kind) {
            compiled = Statement::Watched(Box::new(compiled));
        }
        match self.numbers.get(&address(statement)) {
            Some(&number) => Statement::Noted(number, Box::new(compiled)),
            None => compiled,
        }
    }

    fn plain_statement(&self, kind: &StatementKind) -> Statement {
        match kind {
            StatementKind::Assign { place, value } => match self.share(place, *value) {
                Some(shared) => shared,
                None => self.assign(place, self.expr(*value)),
            },
            StatementKind::Clear(local) => Statement::Clear(self.local_slots(*local)),
            StatementKind::Random { into, bound } => {
                Statement::Random(self.layout.local(*into), self.expr(*bound))
            }
            // The constructor of the interpreter has refused programs with verbatim text.
            StatementKind::Verbatim { .. } | StatementKind::VerbatimValue { .. } => {
                Statement::Clear(0..0)
            }
            StatementKind::Transfer { source, destination, destination_check } => {
                Statement::Transfer(Box::new(Transfer {
                    source: self.thread(source),
                    destination: self.container(destination),
                    destination_check: *destination_check,
                }))
            }
            StatementKind::Dispatch { thread, slice } => {
                Statement::Dispatch(self.thread(thread), slice.map(|slice| self.expr(slice)))
            }
            StatementKind::Destroy { thread } => Statement::Destroy(self.thread(thread)),
            StatementKind::Alarm { thread, at } => {
                Statement::Alarm(self.thread(thread), self.expr(*at))
            }
            StatementKind::Preempt { cpu, at } => {
                Statement::Preempt(self.expr(*cpu), at.map(|at| self.expr(at)))
            }
            StatementKind::If { condition, then, otherwise } => Statement::If(Box::new(If {
                condition: self.expr(*condition),
                then: self.block(then),
                otherwise: self.block(otherwise),
            })),
            StatementKind::Loop(each) => Statement::Loop(Box::new(Loop {
                test_first: each.test == Test::First,
                prelude: self.block(&each.prelude),
                condition: self.expr(each.condition),
                body: self.block(&each.body),
                step: self.block(&each.step),
                bound: each.bound,
            })),
            StatementKind::Foreach { name, container, body } => {
                Statement::Foreach(Box::new(Foreach {
                    name: raw(*name) as u32,
                    container: self.container(container),
                    body: self.block(body),
                }))
            }
            StatementKind::Break => Statement::Break,
            StatementKind::Continue => Statement::Continue,
            StatementKind::Return(None) => Statement::Return,
            StatementKind::Return(Some(Returned::Number(value))) => {
                Statement::ReturnNumber(self.expr(*value))
            }
            StatementKind::Return(Some(Returned::Thread(thread))) => {
                Statement::ReturnThread(self.thread(thread))
            }
        }
    }

    fn thread(&self, thread: &ThreadExpr) -> Thread {
        let which = match &thread.kind {
            ThreadKind::Name(name) => Which::Named(raw(*name) as u32),
            ThreadKind::First(container) => Which::First(self.container(container)),
        };
        Thread { which, check: thread.check }
    }

    fn container(&self, container: &ContainerRef) -> Container {
        let base = self.layout.container(container.container);
        let extent = self.program.containers[container.container].extent;
        match (&container.index, extent) {
            (Some(index), _) => Container::At(self.indexed(base, self.layout.slots(extent), index)),
            (None, Extent::PerCpu) => Container::Here(base),
            (None, Extent::One | Extent::Array(_)) => Container::One(base),
        }
    }

    fn expr(&self, id: ExprId) -> Expr {
        let compiled = self.plain_expr(id);
        if self.notes { Expr::Noted(raw(id) as u32, Box::new(compiled)) } else { compiled }
    }

    fn plain_expr(&self, id: ExprId) -> Expr {
        let pair = |left, right| Box::new((self.expr(left), self.expr(right)));
        let float = |id: ExprId| self.program.exprs[id].ty == Type::Float;
        match &self.program.exprs[id].kind {
            ExprKind::Constant(value) => Expr::Constant(bits(*value)),
            ExprKind::Read(place) => self.read(place),
            ExprKind::Size(container) => Expr::Size(self.container(container)),
            ExprKind::Same(left, right) => {
                Expr::Same(Box::new((self.thread(left), self.thread(right))))
            }
            ExprKind::Now => Expr::Now,
            ExprKind::Cpu => Expr::Cpu,
            ExprKind::Cpus => Expr::Cpus,
            ExprKind::Unary(UnaryOp::Not, operand) => Expr::Not(Box::new(self.expr(*operand))),
            ExprKind::Unary(UnaryOp::Negate, operand) if float(*operand) => {
                Expr::NegateFloat(Box::new(self.expr(*operand)))
            }
            ExprKind::Unary(UnaryOp::Negate, operand) => {
                Expr::Negate(Box::new(self.expr(*operand)))
            }
            ExprKind::Binary(op, left, right) => {
                Expr::Binary(operator(*op, float(*left)), pair(*left, *right))
            }
            ExprKind::And(left, right) => Expr::And(pair(*left, *right)),
            ExprKind::Or(left, right) => Expr::Or(pair(*left, *right)),
            ExprKind::Let { temporary, value, body } => {
                Expr::Let(self.layout.local(*temporary), pair(*value, *body))
            }
            ExprKind::Convert(operand) => match (float(*operand), float(id)) {
                (false, true) => Expr::IntToFloat(Box::new(self.expr(*operand))),
                (true, false) => Expr::FloatToInt(Box::new(self.expr(*operand))),
                // Ints and times have the same form.
                (false, false) | (true, true) => self.expr(*operand),
            },
        }
    }
}

/// Whether the statement itself, not one inside it, may change a container.
fn may_change(kind: &StatementKind) -> bool {
    matches!(
        kind,
        StatementKind::Transfer { .. }
            | StatementKind::Destroy { .. }
            | StatementKind::Assign { place: Place::Attribute(..), .. }
    )
}

fn operator(op: BinaryOp, float: bool) -> Operator {
    match (op, float) {
        (BinaryOp::Add, false) => Operator::Add,
        (BinaryOp::Subtract, false) => Operator::Subtract,
        (BinaryOp::Multiply, false) => Operator::Multiply,
        (BinaryOp::Divide, false) => Operator::Divide,
        (BinaryOp::Remainder, false) => Operator::Remainder,
        (BinaryOp::Equal, false) => Operator::Equal,
        (BinaryOp::NotEqual, false) => Operator::NotEqual,
        (BinaryOp::Less, false) => Operator::Less,
        (BinaryOp::Greater, false) => Operator::Greater,
        (BinaryOp::LessEqual, false) => Operator::LessEqual,
        (BinaryOp::GreaterEqual, false) => Operator::GreaterEqual,
        (BinaryOp::Add, true) => Operator::AddFloat,
        (BinaryOp::Subtract, true) => Operator::SubtractFloat,
        (BinaryOp::Multiply, true) => Operator::MultiplyFloat,
        (BinaryOp::Divide, true) => Operator::DivideFloat,
        (BinaryOp::Remainder, true) => Operator::RemainderFloat,
        (BinaryOp::Equal, true) => Operator::EqualFloat,
        (BinaryOp::NotEqual, true) => Operator::NotEqualFloat,
        (BinaryOp::Less, true) => Operator::LessFloat,
        (BinaryOp::Greater, true) => Operator::GreaterFloat,
        (BinaryOp::LessEqual, true) => Operator::LessEqualFloat,
        (BinaryOp::GreaterEqual, true) => Operator::GreaterEqualFloat,
    }
}
