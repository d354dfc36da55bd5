//! A program as readable text, for tests and for the curious. The text can not be read back.
//!
//! Each check stands behind what it guards as `{3}`, and is listed at the end. Temporaries are
//! `$0`, `$1` and so on within their routine; a name that a routine declares twice gets a number:
//! `i`, `i'2`.

use std::collections::HashMap;
use std::fmt::{self, Display, Formatter};

use super::*;

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Printer { program: self, locals: self.local_names() }.program(f)
    }
}

struct Printer<'a> {
    program: &'a Program,
    locals: HashMap<LocalId, String>,
}

impl Program {
    fn routines(&self) -> impl Iterator<Item = &Routine> {
        let parts =
            self.handlers.iter().flat_map(|handler| &handler.parts).map(|part| &part.routine);
        let invariants = self.invariants.iter().map(|invariant| &invariant.routine);
        [&self.prologue, &self.thread_prologue].into_iter().chain(parts).chain(invariants)
    }

    fn local_names(&self) -> HashMap<LocalId, String> {
        let mut names = HashMap::new();
        for routine in self.routines() {
            let mut temporaries = 0;
            let mut seen: HashMap<&str, u32> = HashMap::new();
            for &id in &routine.locals {
                let local = &self.locals[id];
                let name = if local.temporary {
                    temporaries += 1;
                    format!("${}", temporaries - 1)
                } else {
                    let count = seen.entry(&local.name).or_default();
                    *count += 1;
                    if *count == 1 { local.name.clone() } else { format!("{}'{count}", local.name) }
                };
                names.insert(id, name);
            }
        }
        names
    }
}

impl Printer<'_> {
    fn program(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let program = self.program;
        let partial = if program.partial { "partial " } else { "" };
        writeln!(f, "{partial}scheduler {}", program.name)?;
        for (_, attribute) in program.attributes.iter() {
            let import = if attribute.import { "threadimport" } else { "thread" };
            let value = typed(attribute.initial, attribute.ty);
            let terms = terms(&attribute.terms, attribute.ty);
            let ty = type_name(attribute.ty);
            writeln!(f, "  {import} {ty} {} = {value}{terms}", attribute.name)?;
        }
        for (_, global) in program.globals.iter() {
            let storage = match global.storage {
                Storage::Data => "data",
                Storage::Const => "const",
                Storage::Tunable => "tunable",
                Storage::Import => "import",
            };
            let (name, extent) = (&global.name, extent(global.extent));
            let value = typed(global.initial, global.ty);
            let terms = terms(&global.terms, global.ty);
            writeln!(f, "  {storage} {} {name}{extent} = {value}{terms}", type_name(global.ty))?;
        }
        for (_, container) in
            program.containers.iter().filter(|(_, it)| it.scope == Scope::Scheduler)
        {
            writeln!(f, "  {}", self.container_declaration(container))?;
        }
        self.routine(f, "prologue", &program.prologue)?;
        self.routine(f, "thread prologue", &program.thread_prologue)?;
        for handler in &program.handlers {
            self.handler(f, handler)?;
        }
        for invariant in &program.invariants {
            let name = &program.containers[invariant.container].name;
            let title = format!("invariant {name} {{{}}}", number(invariant.check));
            self.routine_body(f, &title, &invariant.routine)?;
        }
        self.checks(f)
    }

    fn container_declaration(&self, container: &Container) -> String {
        let kind = match container.kind {
            ContainerKind::Threadref => "threadref",
            ContainerKind::Queue => "queue",
            ContainerKind::Stack => "stack",
            ContainerKind::PQueue => "pqueue",
            ContainerKind::PStack => "pstack",
        };
        let sort = container.sort.map_or(String::new(), |sort| {
            let first = if sort.first == First::Highest { "highest" } else { "lowest" };
            format!(", {first} {} first", self.program.attributes[sort.by].name)
        });
        format!("{kind} {}{}{sort}", container.name, extent(container.extent))
    }

    fn handler(&self, f: &mut Formatter<'_>, handler: &Handler) -> fmt::Result {
        let kind = if handler.event.is_query() { "query" } else { "event" };
        for part in &handler.parts {
            let title = match part.role {
                Role::Own => format!("{kind} {}", handler.event),
                Role::Before => format!("before {}", handler.event),
                Role::After => format!("after {}", handler.event),
            };
            self.routine_body(f, &title, &part.routine)?;
        }
        if let Some(stored) = handler.stored {
            writeln!(f, "  stored {{{}}}", number(stored))?;
        }
        for (container, check) in &handler.emptied {
            writeln!(
                f,
                "  emptied {} {{{}}}",
                self.program.containers[*container].name,
                number(*check)
            )?;
        }
        Ok(())
    }

    /// A prologue, if there is anything in it.
    fn routine(&self, f: &mut Formatter<'_>, title: &str, routine: &Routine) -> fmt::Result {
        if routine.body.statements.is_empty() {
            Ok(())
        } else {
            self.routine_body(f, title, routine)
        }
    }

    fn routine_body(&self, f: &mut Formatter<'_>, title: &str, routine: &Routine) -> fmt::Result {
        let parameter = routine.parameter.map_or(String::new(), |name| {
            let name = &self.program.names[name];
            format!("({}{})", if name.fixed { "fixed " } else { "" }, name.name)
        });
        writeln!(f, "\n{title}{parameter}")?;
        for &container in &routine.containers {
            writeln!(f, "  {}", self.container_declaration(&self.program.containers[container]))?;
        }
        for &local in &routine.locals {
            let Local { ty, length, .. } = self.program.locals[local];
            let length = length.map_or(String::new(), |length| format!("[{length}]"));
            writeln!(f, "  {} {}{length}", type_name(ty), self.local(local))?;
        }
        self.block(f, &routine.body, 1)
    }

    fn checks(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.program.checks.is_empty() {
            writeln!(f, "\nchecks")?;
        }
        for (id, check) in self.program.checks.iter() {
            let place = check.event.map_or("", Event::name);
            writeln!(f, "{}", format!("  {{{}}} {:?} {place}", number(id), check.kind).trim_end())?;
        }
        Ok(())
    }

    fn block(&self, f: &mut Formatter<'_>, block: &Block, depth: usize) -> fmt::Result {
        block.statements.iter().try_for_each(|statement| self.statement(f, statement, depth))
    }

    fn statement(&self, f: &mut Formatter<'_>, statement: &Statement, depth: usize) -> fmt::Result {
        let indent = "  ".repeat(depth);
        match &statement.kind {
            StatementKind::Assign { place, value } => {
                writeln!(f, "{indent}{} = {}", self.place(place), self.expr(*value))
            }
            StatementKind::Clear(local) => writeln!(f, "{indent}clear {}", self.local(*local)),
            StatementKind::Random { into, bound } => {
                writeln!(f, "{indent}{} = random {}", self.local(*into), self.expr(*bound))
            }
            StatementKind::Verbatim { text } => writeln!(f, "{indent}verbatim {text:?}"),
            StatementKind::VerbatimValue { into, text } => {
                writeln!(f, "{indent}{} = verbatim {text:?}", self.local(*into))
            }
            StatementKind::Transfer { source, destination, destination_check } => {
                let check = destination_check
                    .map_or(String::new(), |check| format!("{{{}}}", number(check)));
                writeln!(
                    f,
                    "{indent}{} => {}{check}",
                    self.thread(source),
                    self.container(destination)
                )
            }
            StatementKind::Dispatch { thread, slice } => {
                let slice =
                    slice.map_or(String::new(), |slice| format!(" for {}", self.expr(slice)));
                writeln!(f, "{indent}dispatch {}{slice}", self.thread(thread))
            }
            StatementKind::Destroy { thread } => {
                writeln!(f, "{indent}destroy {}", self.thread(thread))
            }
            StatementKind::Alarm { thread, at } => {
                writeln!(f, "{indent}alarm {} at {}", self.thread(thread), self.expr(*at))
            }
            StatementKind::Preempt { cpu, at: None } => {
                writeln!(f, "{indent}preempt {}", self.expr(*cpu))
            }
            StatementKind::Preempt { cpu, at: Some(at) } => {
                writeln!(f, "{indent}preempt {} at {}", self.expr(*cpu), self.expr(*at))
            }
            StatementKind::If { condition, then, otherwise } => {
                writeln!(f, "{indent}if {}", self.expr(*condition))?;
                self.block(f, then, depth + 1)?;
                if otherwise.statements.is_empty() {
                    return Ok(());
                }
                writeln!(f, "{indent}else")?;
                self.block(f, otherwise, depth + 1)
            }
            StatementKind::Loop(each) => self.loop_statement(f, each, depth),
            StatementKind::Foreach { name, container, body } => {
                let name = &self.program.names[*name].name;
                writeln!(f, "{indent}foreach {name} in {}", self.container(container))?;
                self.block(f, body, depth + 1)
            }
            StatementKind::Break => writeln!(f, "{indent}break"),
            StatementKind::Continue => writeln!(f, "{indent}continue"),
            StatementKind::Return(None) => writeln!(f, "{indent}return"),
            StatementKind::Return(Some(Returned::Number(value))) => {
                writeln!(f, "{indent}return {}", self.expr(*value))
            }
            StatementKind::Return(Some(Returned::Thread(thread))) => {
                writeln!(f, "{indent}return thread {}", self.thread(thread))
            }
        }
    }

    fn loop_statement(&self, f: &mut Formatter<'_>, each: &Loop, depth: usize) -> fmt::Result {
        let indent = "  ".repeat(depth);
        writeln!(f, "{indent}loop {{{}}}", number(each.bound))?;
        let part = |f: &mut Formatter<'_>, name: &str, block: &Block| {
            if block.statements.is_empty() {
                return Ok(());
            }
            writeln!(f, "{indent} {name}")?;
            self.block(f, block, depth + 1)
        };
        let test = |f: &mut Formatter<'_>| {
            part(f, "prelude", &each.prelude)?;
            writeln!(f, "{indent} while {}", self.expr(each.condition))
        };
        if each.test == Test::First {
            test(f)?;
        }
        part(f, "body", &each.body)?;
        part(f, "step", &each.step)?;
        if each.test == Test::Last {
            test(f)?;
        }
        Ok(())
    }

    fn expr(&self, id: ExprId) -> String {
        let Expr { kind, ty, .. } = &self.program.exprs[id];
        match kind {
            ExprKind::Constant(value) => typed(*value, *ty),
            ExprKind::Read(place) => self.place(place),
            ExprKind::Size(container) => format!("|{}|", self.container(container)),
            ExprKind::Same(left, right) => {
                format!("({} same {})", self.thread(left), self.thread(right))
            }
            ExprKind::Now => "now".to_string(),
            ExprKind::Cpu => "cpu".to_string(),
            ExprKind::Cpus => "cpus".to_string(),
            ExprKind::Unary(UnaryOp::Negate, operand) => format!("-{}", self.expr(*operand)),
            ExprKind::Unary(UnaryOp::Not, operand) => format!("!{}", self.expr(*operand)),
            ExprKind::Binary(op, left, right) => {
                format!("({} {} {})", self.expr(*left), symbol(*op), self.expr(*right))
            }
            ExprKind::And(left, right) => {
                format!("({} && {})", self.expr(*left), self.expr(*right))
            }
            ExprKind::Or(left, right) => format!("({} || {})", self.expr(*left), self.expr(*right)),
            ExprKind::Let { temporary, value, body } => {
                format!(
                    "(let {} = {} in {})",
                    self.local(*temporary),
                    self.expr(*value),
                    self.expr(*body)
                )
            }
            ExprKind::Convert(operand) => format!("{}({})", type_name(*ty), self.expr(*operand)),
        }
    }

    fn place(&self, place: &Place) -> String {
        match place {
            Place::Local(local, index) => format!("{}{}", self.local(*local), self.index(index)),
            Place::Global(global, index) => {
                format!("{}{}", self.program.globals[*global].name, self.index(index))
            }
            Place::Attribute(thread, attribute) => {
                format!("{}.{}", self.thread(thread), self.program.attributes[*attribute].name)
            }
        }
    }

    fn thread(&self, thread: &ThreadExpr) -> String {
        let check = thread.check.map_or(String::new(), |check| format!("{{{}}}", number(check)));
        match &thread.kind {
            ThreadKind::Name(name) => format!("{}{check}", self.program.names[*name].name),
            ThreadKind::First(container) => format!("*{}{check}", self.container(container)),
        }
    }

    fn container(&self, container: &ContainerRef) -> String {
        format!(
            "{}{}",
            self.program.containers[container.container].name,
            self.index(&container.index)
        )
    }

    fn index(&self, index: &Option<Index>) -> String {
        index.map_or(String::new(), |index| {
            format!("[{}]{{{}}}", self.expr(index.at), number(index.check))
        })
    }

    fn local(&self, local: LocalId) -> &str {
        self.locals.get(&local).map_or("?", String::as_str)
    }
}

fn number(check: CheckId) -> u32 {
    check.into_raw().into_u32()
}

fn extent(extent: Extent) -> String {
    match extent {
        Extent::One => String::new(),
        Extent::Array(length) => format!("[{length}]"),
        Extent::PerCpu => "[per CPU]".to_string(),
    }
}

fn type_name(ty: Type) -> &'static str {
    match ty {
        Type::Int => "int",
        Type::Float => "float",
        Type::Time => "time",
    }
}

fn typed(value: Value, ty: Type) -> String {
    match value {
        Value::Int(value) if ty == Type::Time && value != 0 => format!("{value}ns"),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => format!("{value:?}"),
    }
}

/// What follows the default of an import.
fn terms(terms: &Terms, ty: Type) -> String {
    let bound = |bound| typed(Value::Int(bound), ty);
    let range = terms.range.map(|(low, high)| format!(" within {} to {}", bound(low), bound(high)));
    let supplier = match terms.supplier {
        Supplier::Owner => String::new(),
        other => format!(" by {}", other.word()),
    };
    range.unwrap_or_default() + &supplier
}

fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Subtract => "-",
        BinaryOp::Multiply => "*",
        BinaryOp::Divide => "/",
        BinaryOp::Remainder => "%",
        BinaryOp::Equal => "==",
        BinaryOp::NotEqual => "!=",
        BinaryOp::Less => "<",
        BinaryOp::Greater => ">",
        BinaryOp::LessEqual => "<=",
        BinaryOp::GreaterEqual => ">=",
    }
}
