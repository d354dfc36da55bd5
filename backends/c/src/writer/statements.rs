//! Statements, in the order of effects that `ir` fixes.
//!
//! A container whose index can fail is looked up once, into `attune_from` or `attune_to`.

use attune_language::engine::event::Event;
use attune_language::ir::{
    AttributeId, Block, CheckId, ContainerKind, ContainerRef, ExprId, ExprKind, LocalId, NameId,
    Place, Returned, Statement, StatementKind, ThreadExpr, ThreadKind, Type, Value,
};
use attune_language::source::Span;

use super::Writer;
use super::expressions::{constant, fitted};
use super::loops::Frame;
use super::target::Failures;

/// What surrounds the statement being written.
#[derive(Default)]
pub struct Function {
    pub leave: Leave,
    /// Innermost last.
    pub frames: Vec<Frame>,
    /// Threads named by the `foreach` loops around, and by the parameter.
    pub threads: Vec<NameId>,
    pub locals: Vec<LocalId>,
    /// None in prologues and invariants.
    pub event: Option<Event>,
    pub labels: u32,
    /// A jump to [`Leave::To`] was written.
    pub jumped: bool,
    /// Loops take from the handler's budget.
    pub counted: bool,
    commented: Option<(u32, u32)>,
}

/// How a part ends early.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Leave {
    #[default]
    Return,
    /// To a label behind the part.
    To(String),
    /// An invariant answers.
    Answer,
}

impl Function {
    pub fn new(leave: Leave) -> Function {
        Function { leave, ..Function::default() }
    }
}

impl Writer<'_> {
    /// `tail`: the part ends behind the block.
    pub(super) fn block(&mut self, block: &Block, tail: bool) {
        let last = block.statements.len().wrapping_sub(1);
        for (number, statement) in block.statements.iter().enumerate() {
            self.statement(statement, tail && number == last);
        }
    }

    fn statement(&mut self, statement: &Statement, tail: bool) {
        self.comment(statement.span);
        match &statement.kind {
            StatementKind::Assign { place, value } => self.assign(place, *value),
            StatementKind::Clear(local) => {
                let length = self.program.locals[*local].length.unwrap_or(1);
                let (test, zero) = (self.bounded(&length.to_string()), self.zero());
                self.out.open(format!("for (uint32_t attune_i = {zero}; {test}; attune_i++)"));
                let name = self.names.local(*local).to_string();
                self.out.line(format!("{name}[attune_i] = 0;"));
                self.out.dedent();
            }
            StatementKind::Random { into, bound } => {
                let bound = self.expr(*bound);
                let into = self.names.local(*into).to_string();
                self.out.line(format!("{into} = attune_random(attune, {bound});"));
            }
            StatementKind::Verbatim { text } => self.verbatim(text, statement.span),
            StatementKind::VerbatimValue { into, text } => {
                self.verbatim_value(*into, text, statement.span)
            }
            StatementKind::Transfer { source, destination, destination_check } => {
                let room = destination_check.filter(|&check| self.performed(check));
                self.transfer(source, destination, room, statement.span);
            }
            StatementKind::Dispatch { thread, slice } => self.dispatch(thread, *slice, tail),
            StatementKind::Destroy { thread } => {
                let head = self.head(thread);
                self.out.line(format!("attune_destroy({head});"));
                self.watch();
            }
            StatementKind::Alarm { thread, at } => {
                let head = self.head(thread);
                if head.starts_with('&') || !self.is_fallible(*at) {
                    let at = self.expr(*at);
                    self.out.line(format!("ATTUNE_ALARM(attune, {head}, {at});"));
                } else {
                    self.out.open("{");
                    self.out
                        .line(format!("struct attune_thread ATTUNE_ARENA *attune_woken = {head};"));
                    let at = self.expr(*at);
                    self.out.line(format!("ATTUNE_ALARM(attune, attune_woken, {at});"));
                    self.out.close("}");
                }
            }
            StatementKind::Preempt { cpu, at } => {
                let cpu = self.expr(*cpu);
                let at = at.map_or("0".into(), |at| self.expr(at));
                self.out.line(format!("ATTUNE_PREEMPT(attune, {cpu}, {at});"));
            }
            StatementKind::If { condition, then, otherwise } => {
                self.branch(*condition, then, otherwise, tail);
            }
            StatementKind::Loop(each) => self.iterate(each, statement.span),
            StatementKind::Foreach { name, container, body } => {
                self.foreach(*name, container, body, statement.span);
            }
            StatementKind::Break => self.leave_loop(),
            StatementKind::Continue => self.next_iteration(),
            StatementKind::Return(value) => self.give(value.as_ref(), tail),
        }
    }

    /// The scheduler's line above its C; in debug builds the compiler counts there.
    fn comment(&mut self, span: Span) {
        let line = self.line(span);
        let place = (span.source.0, line);
        if self.debug {
            self.out.at_source(self.sources.name(span.source), line);
        }
        if self.function.commented == Some(place) {
            return;
        }
        self.function.commented = Some(place);
        let text = self.sources.slice(span).lines().next().unwrap_or("").trim();
        // A backslash at the end would join the next line to the comment.
        let text = text.trim_end_matches('\\');
        if self.debug {
            return;
        }
        let place = self.place(span);
        self.out.line(format!("// {place}: {text}"));
    }

    fn assign(&mut self, place: &Place, value: ExprId) {
        if let Place::Global(id, None) = *place
            && self.is_shared(id)
        {
            return self.share(id, value);
        }
        let place_fails = self.place_is_fallible(place);
        let value_text = if self.is_verified() { self.operand(value) } else { self.expr(value) };
        if place_fails && self.is_fallible(value) {
            // The value comes first, then the place.
            let ty = c_type(self.program.exprs[value].ty);
            self.out.open("{");
            self.out.line(format!("const {ty} attune_value = {value_text};"));
            self.assign_text(place, "attune_value");
            self.out.close("}");
        } else {
            self.assign_text(place, &value_text);
        }
        if matches!(place, Place::Attribute(..)) {
            self.watch();
        }
    }

    fn assign_text(&mut self, place: &Place, value: &str) {
        match place {
            Place::Attribute(thread, attribute) => {
                let import = self.names.thread_import(*attribute).is_some();
                let is_key = self
                    .program
                    .containers
                    .values()
                    .any(|container| container.sort.is_some_and(|sort| sort.by == *attribute));
                let value = fitted(self.program.attributes[*attribute].terms, value.to_string());
                if !import && !is_key {
                    let target = self.variable(place);
                    self.out.line(format!("{target} = {value};"));
                    return;
                }
                let value = &value;
                let record = self.record(thread);
                let named = !record.contains('(');
                if named || !is_key {
                    self.assign_attribute(&record, *attribute, value, is_key);
                } else {
                    self.out.open("{");
                    self.out.line(format!("struct thread ATTUNE_ARENA *attune_meant = {record};"));
                    self.assign_attribute("attune_meant", *attribute, value, is_key);
                    self.out.close("}");
                }
            }
            Place::Global(id, _) if self.is_import(place) => {
                let target = self.variable(place);
                let value = fitted(self.program.globals[*id].terms, value.to_string());
                self.out.line(format!("{target} = {value};"));
                self.write_through(*id);
            }
            Place::Local(..) if self.is_verified() => {
                let target = self.variable(place);
                self.out.line(format!("{target} = {value} + ATTUNE_ZERO;"));
            }
            Place::Local(..) | Place::Global(..) => {
                let target = self.variable(place);
                self.out.line(format!("{target} = {value};"));
            }
        }
    }

    fn assign_attribute(
        &mut self,
        record: &str,
        attribute: AttributeId,
        value: &str,
        is_key: bool,
    ) {
        let float = self.program.attributes[attribute].ty == Type::Float;
        match self.thread_import(attribute) {
            Some((member, width)) => {
                let set = if float { "attune_set_real" } else { "attune_set" };
                let line = format!("{set}(attune, &{record}->{member}, {width}, {value});");
                self.out.line(line);
            }
            None => {
                let line = format!("{record}->{} = {value};", self.names.attribute(attribute));
                self.out.line(line);
            }
        }
        if is_key {
            let key = self.key(record, attribute);
            let number = attribute.into_raw().into_u32() + 1;
            self.out.line(format!("attune_resort(attune, &{record}->attune, {number}, {key});"));
        }
    }

    /// The sort key of a thread, given its record.
    fn key(&self, record: &str, attribute: AttributeId) -> String {
        let value = self.attribute(record, attribute);
        if self.program.attributes[attribute].ty == Type::Float {
            format!("attune_key_of_real({value})")
        } else {
            value
        }
    }

    fn transfer(
        &mut self,
        source: &ThreadExpr,
        destination: &ContainerRef,
        room: Option<CheckId>,
        span: Span,
    ) {
        let mut block_opened = false;
        let from_fails =
            matches!(&source.kind, ThreadKind::First(of) if self.container_is_fallible(of));
        let to_fails = self.container_is_fallible(destination);
        if from_fails || to_fails {
            self.out.open("{");
        }
        let to = match to_fails {
            true => None,
            false => Some(format!("&{}", self.container(destination))),
        };
        let check = source.check.filter(|&check| self.performed(check));
        let check = check.map(|check| self.thread_check(check, source));
        let (head, record) = match &source.kind {
            ThreadKind::Name(id) => {
                let record = self.names.thread(*id).to_string();
                let head = format!("&{record}->attune");
                if let Some(check) = check {
                    self.out.line(format!("attune_need_alive(attune, {check}, {head});"));
                }
                (head, record)
            }
            ThreadKind::First(of) => {
                let mut from = format!("&{}", self.container(of));
                if from_fails {
                    self.out.line(format!(
                        "struct attune_container ATTUNE_ARENA *attune_from = {from};"
                    ));
                    from = "attune_from".to_string();
                }
                if let Some(check) = check {
                    let to = to.as_deref().unwrap_or("NULL");
                    if self.target.failures == Failures::AreNoted {
                        // The handler goes on behind a failed check, with a thread that is none.
                        block_opened = true;
                        self.out.open("{");
                        let need = self.here("attune_need", &of.clone());
                        self.out.line(format!(
                            "struct attune_thread ATTUNE_ARENA *attune_moved = {need}{check}, \
                                {from}, {to});"
                        ));
                        ("attune_moved".to_string(), "ATTUNE_RECORD(attune_moved)".to_string())
                    } else {
                        self.out.line(format!("attune_need(attune, {check}, {from}, {to});"));
                        (format!("attune_first({from})"), format!("ATTUNE_FIRST({from})"))
                    }
                } else {
                    let head = format!("{}{from})", self.here("attune_first", of));
                    (
                        head.clone(),
                        if self.is_filtered(of) {
                            format!("ATTUNE_RECORD({head})")
                        } else {
                            format!("ATTUNE_FIRST({from})")
                        },
                    )
                }
            }
        };
        let to = to.unwrap_or_else(|| {
            let found = self.container(destination);
            self.out.line(format!("struct attune_container ATTUNE_ARENA *attune_to = &{found};"));
            "attune_to".to_string()
        });
        if let Some(room) = room {
            let check = self.room_check(room, source.span, destination.span);
            self.out.line(format!("attune_need_room(attune, {check}, {to}, {head});"));
        }
        let key = match self.program.containers[destination.container].sort {
            None => "0".to_string(),
            Some(sort) => self.key(&record, sort.by),
        };
        let line = self.line_of_transfer(span);
        let queue = self.program.containers[destination.container].kind == ContainerKind::Queue;
        let same = |of: &ContainerRef| {
            of.container == destination.container && of.index.is_none() && !self.is_filtered(of)
        };
        if queue && matches!(&source.kind, ThreadKind::First(of) if same(of)) {
            self.out.line(format!("attune_rotate(attune, {to}, {head}, {line});"));
        } else {
            self.out.line(format!("attune_move(attune, {head}, {to}, {key}, {line});"));
        }
        if block_opened {
            self.out.close("}");
        }
        if from_fails || to_fails {
            self.out.close("}");
        }
        self.watch();
    }

    fn room_check(&mut self, room: CheckId, source: Span, destination: Span) -> String {
        self.check(room, |writer| {
            let (source, destination) = (writer.quote(source), writer.quote(destination));
            format!("cannot move {source} to {destination}: there is a thread already")
        })
    }

    fn dispatch(&mut self, thread: &ThreadExpr, slice: Option<ExprId>, tail: bool) {
        let head = self.head(thread);
        self.out.line(format!("attune->dispatched = {head};"));
        let slice = match slice.map(|slice| (slice, &self.program.exprs[slice].kind)) {
            None => "-1".to_string(),
            Some((_, ExprKind::Constant(Value::Int(slice)))) => {
                constant(Value::Int(*slice.max(&0)))
            }
            Some((slice, _)) => format!("attune_slice({})", self.expr(slice)),
        };
        let [before, behind] = self.target.slice;
        self.out.line(format!("{before}{slice}{behind}"));
        self.leave_part(tail);
    }

    fn give(&mut self, value: Option<&Returned>, tail: bool) {
        let invariant = self.function.leave == Leave::Answer;
        match value {
            None => {}
            Some(Returned::Number(value)) if invariant => {
                let value = self.operand(*value);
                let cursors = self.leave_cursors();
                if cursors.is_empty() {
                    self.out.line(format!("return {value} != 0;"));
                } else {
                    self.out.open("{");
                    self.out.line(format!("const int attune_answer = {value} != 0;"));
                    cursors.iter().for_each(|line| self.out.line(line));
                    self.out.line("return attune_answer;");
                    self.out.close("}");
                }
                return;
            }
            Some(Returned::Number(value)) => {
                let value = self.expr(*value);
                self.out.line(format!("attune->value = {value};"));
            }
            Some(Returned::Thread(_)) if invariant => {}
            Some(Returned::Thread(thread)) => {
                let head = self.head(thread);
                self.out.line(format!("attune->value_thread = {head};"));
            }
        }
        self.leave_part(tail);
    }

    /// Leaves the part, saying goodbye to the containers that are being visited.
    fn leave_part(&mut self, tail: bool) {
        for line in self.leave_cursors() {
            self.out.line(line);
        }
        match &self.function.leave {
            _ if tail => {}
            Leave::Return => {
                self.out.line(self.target.leave);
            }
            Leave::Answer => self.out.line("return 1;"),
            Leave::To(label) => {
                let line = format!("goto {label};");
                self.out.line(line);
                self.function.jumped = true;
            }
        }
    }

    fn leave_cursors(&self) -> Vec<String> {
        let cursor = |frame: &Frame| match frame {
            Frame::Foreach(cursor) => Some(format!("attune_leave(&{cursor});")),
            Frame::Loop(_) => None,
        };
        self.function.frames.iter().rev().filter_map(cursor).collect()
    }

    fn branch(&mut self, condition: ExprId, then: &Block, otherwise: &Block, tail: bool) {
        let condition = self.expr(condition);
        self.out.open(format!("if ({condition}) {{"));
        self.block(then, tail);
        let mut rest = otherwise;
        // An `else` that holds nothing but an `if` goes on beside it.
        while let [Statement { kind: StatementKind::If { condition, then, otherwise }, span }] =
            rest.statements.as_slice()
        {
            if self.debug {
                break;
            }
            let place = self.place(*span);
            let condition = self.expr(*condition);
            self.out.turn(format!("}} else if ({condition}) {{ // {place}"));
            self.block(then, tail);
            rest = otherwise;
        }
        if !rest.statements.is_empty() {
            self.out.turn("} else {");
            self.block(rest, tail);
        }
        self.out.close("}");
    }

    /// In debug builds, behind a statement that may have changed a container.
    fn watch(&mut self) {
        if self.debug && self.function.leave != Leave::Answer {
            self.out.line("attune_watch(attune);");
        }
    }
}

pub fn c_type(ty: Type) -> &'static str {
    match ty {
        Type::Int | Type::Time => "int64_t",
        Type::Float => "double",
    }
}
