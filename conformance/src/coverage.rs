//! Which of the IR's operations the random cases execute: statement kinds by what they act on,
//! expression kinds by type, containers by kind, extent and operation.
//!
//! An operation has a name (`transfer first queue -> pqueue`, `time <=`); [`universe`] lists all of
//! them, and a case adds the names of what the interpreter reached.

use std::collections::BTreeSet;

use attune_language::ir::{
    BinaryOp, ContainerKind, ContainerRef, ExprId, ExprKind, Extent, Place, Program, Returned,
    Scope, StatementKind, Storage, Test, ThreadExpr, ThreadKind, Type, UnaryOp,
};
use attune_simulator::interpreter::Options;

use crate::budget::Budget;
use crate::driver::{self, ProtocolDriver, Setting};
use crate::generator;
use crate::interpreted::Interpreted;
use crate::random::{Random, derive};
use crate::scheduler::Scheduler;

#[derive(Clone, Debug, Default)]
pub struct Report {
    pub covered: BTreeSet<String>,
    pub missing: BTreeSet<String>,
}

pub fn run(budget: &Budget) -> Report {
    let universe = universe();
    let mut reached = BTreeSet::new();
    for number in 0..budget.schedulers {
        let seed = derive(budget.seed, number);
        if let Ok(scheduler) = Scheduler::new(&generator::scheduler(seed, budget.size)) {
            execute(&scheduler, budget, seed, &mut reached);
        }
    }
    let (covered, missing) = universe.into_iter().partition(|name| reached.contains(name));
    Report { covered, missing }
}

fn execute(scheduler: &Scheduler, budget: &Budget, seed: u64, reached: &mut BTreeSet<String>) {
    let mut random = Random::new(derive(seed, 2));
    for _ in 0..budget.runs {
        let cpus = 1 + random.below(3) as u32;
        let setting = Setting {
            instances: 1,
            cpus,
            pinning: true,
            preemptive: true,
            killing: false,
            max_threads: 8,
            imports: true,
        };
        let options = Options { cpus, seed, debug: true, notes: true };
        let Ok(mut subject) =
            Interpreted::new(scheduler.program.clone(), &scheduler.sources, options, 1)
        else {
            continue;
        };
        // How the run ends does not matter here.
        let _ = ProtocolDriver::new(setting)
            .run(&driver::steps(random.draw(), budget.steps), &mut subject);
        let found = subject.interpreter(0).reached();
        let program = &scheduler.program;
        found
            .statements
            .iter()
            .for_each(|(statement, _)| name_statement(program, &statement.kind, reached));
        found.exprs.iter().for_each(|&(expr, _)| name_expr(program, expr, reached));
    }
}

impl Report {
    pub fn share(&self) -> f64 {
        self.covered.len() as f64 / (self.covered.len() + self.missing.len()).max(1) as f64
    }

    pub fn table(&self) -> String {
        let missing: Vec<&str> = self.missing.iter().map(String::as_str).collect();
        format!(
            "{} of {} operations executed ({:.1} %)\nnot executed: {}\n",
            self.covered.len(),
            self.covered.len() + self.missing.len(),
            100.0 * self.share(),
            if missing.is_empty() { "none".to_string() } else { missing.join(", ") }
        )
    }
}

const TYPES: [Type; 3] = [Type::Int, Type::Float, Type::Time];
const KINDS: [ContainerKind; 5] = [
    ContainerKind::Threadref,
    ContainerKind::Queue,
    ContainerKind::Stack,
    ContainerKind::PQueue,
    ContainerKind::PStack,
];
const OPERATORS: [(BinaryOp, &str); 11] = [
    (BinaryOp::Add, "+"),
    (BinaryOp::Subtract, "-"),
    (BinaryOp::Multiply, "*"),
    (BinaryOp::Divide, "/"),
    (BinaryOp::Remainder, "%"),
    (BinaryOp::Equal, "=="),
    (BinaryOp::NotEqual, "!="),
    (BinaryOp::Less, "<"),
    (BinaryOp::Greater, ">"),
    (BinaryOp::LessEqual, "<="),
    (BinaryOp::GreaterEqual, ">="),
];
const EXTENTS: [&str; 5] = ["one", "array", "per CPU", "per CPU by number", "local"];
const USES: [&str; 4] = ["insert", "first", "size", "foreach"];

/// The names of all operations.
pub fn universe() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut add = |name: String| {
        names.insert(name);
    };
    for ty in TYPES.map(type_name) {
        for place in
            ["local", "local array", "global", "global array", "per CPU", "per CPU by number"]
        {
            add(format!("read {place} {ty}"));
            add(format!("assign {place} {ty}"));
        }
        for place in ["import", "attribute", "attribute import", "attribute that sorts"] {
            add(format!("read {place} {ty}"));
            add(format!("assign {place} {ty}"));
        }
        add(format!("read tunable {ty}"));
        add(format!("constant {ty}"));
        add(format!("negate {ty}"));
        OPERATORS.iter().for_each(|(_, op)| add(format!("{ty} {op}")));
    }
    for from in KINDS.map(kind_name) {
        add(format!("transfer name -> {from}"));
        add(format!("foreach {from}"));
        add(format!("size {from}"));
        add(format!("first {from}"));
        KINDS.map(kind_name).iter().for_each(|to| add(format!("transfer first {from} -> {to}")));
    }
    for extent in EXTENTS {
        for used in USES {
            // A local container is declared alone, and indexed by nothing.
            add(format!("container {extent}: {used}"));
        }
    }
    for thread in ["name", "first"] {
        for rest in ["dispatch", "dispatch for", "destroy", "alarm", "return thread"] {
            add(format!("{rest} {thread}"));
        }
    }
    for name in [
        "clear array",
        "random",
        "preempt",
        "preempt at",
        "if",
        "loop, test first",
        "loop, test last",
        "break",
        "continue",
        "return",
        "return number",
        "same name name",
        "same name first",
        "same first first",
        "now",
        "cpu",
        "cpus",
        "not",
        "and",
        "or",
        "let",
        "int to float",
        "time to float",
        "float to int",
        "float to time",
    ] {
        add(name.to_string());
    }
    names
}

fn name_statement(program: &Program, kind: &StatementKind, names: &mut BTreeSet<String>) {
    let mut add = |name: String| {
        names.insert(name);
    };
    match kind {
        StatementKind::Assign { place, .. } => {
            place_names(program, place)
                .into_iter()
                .for_each(|place| add(format!("assign {place}")));
            if let Place::Attribute(thread, _) = place {
                name_thread(program, thread, names);
            }
        }
        StatementKind::Clear(_) => add("clear array".into()),
        StatementKind::Random { .. } => add("random".into()),
        StatementKind::Transfer { source, destination, .. } => {
            let to = kind_name(program.containers[destination.container].kind);
            match &source.kind {
                ThreadKind::Name(_) => add(format!("transfer name -> {to}")),
                ThreadKind::First(from) => {
                    let from = kind_name(program.containers[from.container].kind);
                    add(format!("transfer first {from} -> {to}"));
                }
            }
            name_container(program, destination, "insert", names);
            name_thread(program, source, names);
        }
        StatementKind::Dispatch { thread, slice } => {
            let word = if slice.is_some() { "dispatch for" } else { "dispatch" };
            add(format!("{word} {}", thread_name(thread)));
            name_thread(program, thread, names);
        }
        StatementKind::Destroy { thread } => add(format!("destroy {}", thread_name(thread))),
        StatementKind::Alarm { thread, .. } => add(format!("alarm {}", thread_name(thread))),
        StatementKind::Preempt { at, .. } => {
            add(if at.is_some() { "preempt at" } else { "preempt" }.into())
        }
        StatementKind::If { .. } => add("if".into()),
        StatementKind::Loop(each) if each.test == Test::First => add("loop, test first".into()),
        StatementKind::Loop(_) => add("loop, test last".into()),
        StatementKind::Foreach { container, .. } => {
            add(format!("foreach {}", kind_name(program.containers[container.container].kind)));
            name_container(program, container, "foreach", names);
        }
        StatementKind::Break => add("break".into()),
        StatementKind::Continue => add("continue".into()),
        StatementKind::Return(None) => add("return".into()),
        StatementKind::Return(Some(Returned::Number(_))) => add("return number".into()),
        StatementKind::Return(Some(Returned::Thread(thread))) => {
            add(format!("return thread {}", thread_name(thread)));
        }
        // No interpreted scheduler has them.
        StatementKind::Verbatim { .. } | StatementKind::VerbatimValue { .. } => {}
    }
}

fn name_expr(program: &Program, id: ExprId, names: &mut BTreeSet<String>) {
    let ty = |id: ExprId| type_name(program.exprs[id].ty);
    let mut add = |name: String| {
        names.insert(name);
    };
    match &program.exprs[id].kind {
        ExprKind::Constant(_) => add(format!("constant {}", ty(id))),
        ExprKind::Read(place) => {
            place_names(program, place).into_iter().for_each(|place| add(format!("read {place}")));
            if let Place::Attribute(thread, _) = place {
                name_thread(program, thread, names);
            }
        }
        ExprKind::Size(container) => {
            add(format!("size {}", kind_name(program.containers[container.container].kind)));
            name_container(program, container, "size", names);
        }
        ExprKind::Same(left, right) => {
            let mut pair = [thread_name(left), thread_name(right)];
            pair.sort_unstable_by(|a, b| b.cmp(a));
            add(format!("same {} {}", pair[0], pair[1]));
        }
        ExprKind::Now => add("now".into()),
        ExprKind::Cpu => add("cpu".into()),
        ExprKind::Cpus => add("cpus".into()),
        ExprKind::Unary(UnaryOp::Not, _) => add("not".into()),
        ExprKind::Unary(UnaryOp::Negate, operand) => add(format!("negate {}", ty(*operand))),
        ExprKind::Binary(op, left, _) => {
            let spelling = OPERATORS.iter().find(|(operator, _)| operator == op);
            add(format!("{} {}", ty(*left), spelling.map_or("", |(_, spelling)| spelling)));
        }
        ExprKind::And(..) => add("and".into()),
        ExprKind::Or(..) => add("or".into()),
        ExprKind::Let { .. } => add("let".into()),
        ExprKind::Convert(operand) => add(format!("{} to {}", ty(*operand), ty(id))),
    }
}

/// What a place is, with its type; an attribute by which a container is sorted has two names.
fn place_names(program: &Program, place: &Place) -> Vec<String> {
    match place {
        Place::Local(local, index) => {
            let array = if index.is_some() { " array" } else { "" };
            vec![format!("local{array} {}", type_name(program.locals[*local].ty))]
        }
        Place::Global(global, index) => {
            let global = &program.globals[*global];
            let what = match (global.storage, global.extent, index.is_some()) {
                (Storage::Import, ..) => "import",
                (Storage::Tunable, ..) => "tunable",
                (_, Extent::One, _) => "global",
                (_, Extent::Array(_), _) => "global array",
                (_, Extent::PerCpu, false) => "per CPU",
                (_, Extent::PerCpu, true) => "per CPU by number",
            };
            vec![format!("{what} {}", type_name(global.ty))]
        }
        Place::Attribute(_, id) => {
            let attribute = &program.attributes[*id];
            let ty = type_name(attribute.ty);
            let import = if attribute.import { " import" } else { "" };
            let mut names = vec![format!("attribute{import} {ty}")];
            if program
                .containers
                .values()
                .any(|container| container.sort.is_some_and(|sort| sort.by == *id))
            {
                names.push(format!("attribute that sorts {ty}"));
            }
            names
        }
    }
}

fn name_thread(program: &Program, thread: &ThreadExpr, names: &mut BTreeSet<String>) {
    if let ThreadKind::First(container) = &thread.kind {
        names.insert(format!("first {}", kind_name(program.containers[container.container].kind)));
        name_container(program, container, "first", names);
    }
}

fn name_container(program: &Program, of: &ContainerRef, used: &str, names: &mut BTreeSet<String>) {
    let container = &program.containers[of.container];
    let extent = match (container.scope, container.extent, of.index.is_some()) {
        (Scope::Handler(_), ..) => "local",
        (_, Extent::One, _) => "one",
        (_, Extent::Array(_), _) => "array",
        (_, Extent::PerCpu, false) => "per CPU",
        (_, Extent::PerCpu, true) => "per CPU by number",
    };
    names.insert(format!("container {extent}: {used}"));
}

fn thread_name(thread: &ThreadExpr) -> &'static str {
    match thread.kind {
        ThreadKind::Name(_) => "name",
        ThreadKind::First(_) => "first",
    }
}

fn type_name(ty: Type) -> &'static str {
    match ty {
        Type::Int => "int",
        Type::Float => "float",
        Type::Time => "time",
    }
}

fn kind_name(kind: ContainerKind) -> &'static str {
    match kind {
        ContainerKind::Threadref => "threadref",
        ContainerKind::Queue => "queue",
        ContainerKind::Stack => "stack",
        ContainerKind::PQueue => "pqueue",
        ContainerKind::PStack => "pstack",
    }
}
