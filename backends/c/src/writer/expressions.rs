//! Expressions. They have no effect, and at most one operand of each can fail or count: C may
//! evaluate them in any order.
//!
//! Invariant: signed arithmetic goes through the runtime's functions, which wrap around; only what
//! cannot overflow is written with C's operators.

use attune_language::engine::event::Event;
use attune_language::ir::visit::{self, Visitor};
use attune_language::ir::{
    AttributeId, BinaryOp, ContainerId, ContainerRef, ExprId, ExprKind, Extent, GlobalId, Index,
    Place, Program, Storage, Terms, ThreadExpr, ThreadKind, Type, UnaryOp, Value,
};

use super::Writer;
use super::target::Imports;

/// C text, and how tightly it holds together.
struct Text {
    text: String,
    binding: Binding,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    /// Holds `&&` or `||`.
    Logic,
    /// Holds another operator.
    Operator,
    /// Stands anywhere without parentheses.
    Whole,
}

fn whole(text: impl Into<String>) -> Text {
    Text { text: text.into(), binding: Binding::Whole }
}

fn loose(text: impl Into<String>) -> Text {
    Text { text: text.into(), binding: Binding::Operator }
}

impl Writer<'_> {
    /// An expression where commas and operators around it do not bind.
    pub(super) fn expr(&mut self, id: ExprId) -> String {
        self.text(id).text
    }

    /// An expression as an operand.
    pub(super) fn operand(&mut self, id: ExprId) -> String {
        self.bound(id, Binding::Whole)
    }

    /// An expression beside `&&`.
    pub(super) fn clause(&mut self, id: ExprId) -> String {
        self.bound(id, Binding::Operator)
    }

    /// An expression that holds together at least so tightly.
    fn bound(&mut self, id: ExprId, least: Binding) -> String {
        let Text { text, binding } = self.text(id);
        if binding >= least { text } else { format!("({text})") }
    }

    fn text(&mut self, id: ExprId) -> Text {
        let program = self.program;
        let expr = &program.exprs[id];
        match &expr.kind {
            ExprKind::Constant(value) => whole(constant(*value)),
            ExprKind::Read(place) => whole(self.read(place)),
            ExprKind::Size(of) => {
                let size = self.here("attune_size", of);
                let of = self.container(of);
                whole(format!("{size}&{of})"))
            }
            ExprKind::Same(left, right) => {
                let (left, right) = (self.head(left), self.head(right));
                loose(format!("{left} == {right}"))
            }
            ExprKind::Now => whole("attune->now"),
            ExprKind::Cpu => whole(format!("(int64_t){}", self.target.cpu)),
            ExprKind::Cpus => whole(format!("(int64_t){}", self.target.cpus)),
            ExprKind::Unary(UnaryOp::Not, operand) => {
                if let ExprKind::Same(left, right) = &program.exprs[*operand].kind {
                    let (left, right) = (self.head(left), self.head(right));
                    return loose(format!("{left} != {right}"));
                }
                let operand = self.operand(*operand);
                whole(format!("!{operand}"))
            }
            ExprKind::Unary(UnaryOp::Negate, operand) if self.is_float(*operand) => {
                let operand = self.operand(*operand);
                whole(format!("(-{operand})"))
            }
            ExprKind::Unary(UnaryOp::Negate, operand) => {
                let operand = self.expr(*operand);
                whole(format!("attune_neg({operand})"))
            }
            ExprKind::Binary(op, left, right) => self.binary(*op, *left, *right),
            ExprKind::And(left, right) => self.logic(*left, "&&", *right),
            ExprKind::Or(left, right) => self.logic(*left, "||", *right),
            ExprKind::Let { temporary, value, body } => {
                let (value, body) = (self.operand(*value), self.operand(*body));
                whole(format!("({} = {value}, {body})", self.names.local(*temporary)))
            }
            ExprKind::Convert(operand) => match (self.is_float(*operand), expr.ty == Type::Float) {
                (false, true) => {
                    let operand = self.operand(*operand);
                    whole(format!("(double){operand}"))
                }
                (true, false) => {
                    let operand = self.expr(*operand);
                    whole(format!("attune_to_int({operand})"))
                }
                (false, false) | (true, true) => self.text(*operand),
            },
        }
    }

    fn logic(&mut self, left: ExprId, operator: &str, right: ExprId) -> Text {
        let (left, right) =
            (self.bound(left, Binding::Operator), self.bound(right, Binding::Operator));
        Text { text: format!("{left} {operator} {right}"), binding: Binding::Logic }
    }

    fn binary(&mut self, op: BinaryOp, left: ExprId, right: ExprId) -> Text {
        let float = self.is_float(left);
        let plain_divisor = match &self.program.exprs[right].kind {
            ExprKind::Constant(Value::Int(value)) => !matches!(value, 0 | -1),
            ExprKind::Constant(Value::Float(value)) => *value != 0.0 && op == BinaryOp::Divide,
            _ => false,
        };
        let function = match op {
            BinaryOp::Add if !float => Some("attune_add"),
            BinaryOp::Subtract if !float => Some("attune_sub"),
            BinaryOp::Multiply if !float => Some("attune_mul"),
            BinaryOp::Divide if !plain_divisor => {
                Some(if float { "attune_div_real" } else { "attune_div" })
            }
            BinaryOp::Remainder if !plain_divisor => {
                Some(if float { "attune_mod_real" } else { "attune_mod" })
            }
            _ => None,
        };
        if let Some(function) = function {
            let (left, right) = (self.expr(left), self.expr(right));
            let counts = matches!(op, BinaryOp::Divide | BinaryOp::Remainder);
            let instance = if counts { "attune, " } else { "" };
            return whole(format!("{function}({instance}{left}, {right})"));
        }
        let operator = match op {
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
        };
        let (left, right) = (self.operand(left), self.operand(right));
        loose(format!("{left} {operator} {right}"))
    }

    fn is_float(&self, id: ExprId) -> bool {
        self.program.exprs[id].ty == Type::Float
    }

    pub(super) fn read(&mut self, place: &Place) -> String {
        match place {
            Place::Attribute(thread, attribute) => {
                let record = self.record(thread);
                self.attribute(&record, *attribute)
            }
            Place::Local(..) | Place::Global(..) => self.variable(place),
        }
    }

    /// A scalar, as something that can be read and assigned. For a global import: this handler's
    /// copy.
    pub(super) fn variable(&mut self, place: &Place) -> String {
        let program = self.program;
        match place {
            Place::Local(id, index) => {
                let length = program.locals[*id].length.unwrap_or(1);
                let element = index.map(|index| self.index(&index, &length.to_string()));
                element_of(self.names.local(*id), element)
            }
            Place::Global(id, index) => {
                let element = self.element(program.globals[*id].extent, index.as_ref());
                element_of(&self.global(*id), element)
            }
            Place::Attribute(thread, attribute) => {
                let record = self.record(thread);
                format!("{record}->{}", self.names.attribute(*attribute))
            }
        }
    }

    /// A variable of the scheduler, in the state of the instance.
    pub(crate) fn global(&self, id: GlobalId) -> String {
        in_state(self.names.global(id))
    }

    /// A container, or an array of them, in the state of the instance.
    pub(crate) fn container_place(&self, id: ContainerId) -> String {
        in_state(self.names.container(id))
    }

    /// A global import and its width, or the firmware's variable.
    pub(super) fn import(&self, id: GlobalId) -> Option<(String, String)> {
        let (import, width) = self.names.import(id)?;
        Some(match self.target.imports {
            Imports::Linked => (in_state(import), in_state(width)),
            Imports::Plain => (import.to_string(), String::new()),
        })
    }

    /// The member of the record that holds a thread import, and its width.
    pub(super) fn thread_import(&self, id: AttributeId) -> Option<(&str, String)> {
        let (member, width) = self.names.thread_import(id)?;
        Some((member, in_state(width)))
    }

    /// An attribute's value, given the thread's record.
    pub(super) fn attribute(&self, record: &str, attribute: AttributeId) -> String {
        let value = match self.thread_import(attribute) {
            None => format!("{record}->{}", self.names.attribute(attribute)),
            Some((member, width)) => {
                let float = self.program.attributes[attribute].ty == Type::Float;
                let get = if float { "attune_get_real" } else { "attune_get" };
                format!("{get}(attune, &{record}->{member}, {width})")
            }
        };
        fitted(self.program.attributes[attribute].terms, value)
    }

    /// A container as an lvalue: `RQ`, `RQ[i]`.
    pub(super) fn container(&mut self, of: &ContainerRef) -> String {
        let element = self.element(self.program.containers[of.container].extent, of.index.as_ref());
        element_of(&self.container_place(of.container), element)
    }

    /// Whether a container is read as holding only the threads that may run on this CPU.
    pub(super) fn is_filtered(&self, of: &ContainerRef) -> bool {
        self.target.affinity
            && self.function.event == Some(Event::Schedule)
            && self.program.containers[of.container].is_shared()
    }

    /// A call of a container function up to its own arguments: `attune_size(`,
    /// `attune_size_here(attune, `.
    pub(super) fn here(&self, function: &str, of: &ContainerRef) -> String {
        match (self.is_filtered(of), function) {
            (true, _) => format!("{function}_here(attune, "),
            (false, "attune_need" | "attune_visit") => format!("{function}(attune, "),
            (false, _) => format!("{function}("),
        }
    }

    fn element(&mut self, extent: Extent, index: Option<&Index>) -> Option<String> {
        match (extent, index) {
            (Extent::PerCpu, None) => Some(self.target.cpu.to_string()),
            (Extent::PerCpu, Some(index)) => Some(self.index(index, self.target.cpus)),
            (Extent::Array(length), Some(index)) => Some(self.index(index, &length.to_string())),
            (Extent::One, Some(index)) => Some(self.index(index, "1")),
            (Extent::One | Extent::Array(_), None) => None,
        }
    }

    fn index(&mut self, index: &Index, length: &str) -> String {
        let at = self.expr(index.at);
        if !self.index_is_checked(index) {
            return at;
        }
        let check = self.index_check(index.check);
        format!("attune_need_index(attune, {check}, {at}, {length})")
    }

    /// The head of a thread's record, checked unless proved; without a check NULL for an empty
    /// container.
    pub(super) fn head(&mut self, thread: &ThreadExpr) -> String {
        let check = thread.check.filter(|&check| self.performed(check));
        let check = check.map(|check| self.thread_check(check, thread));
        match (&thread.kind, check) {
            (ThreadKind::Name(id), None) => format!("&{}->attune", self.names.thread(*id)),
            (ThreadKind::Name(id), Some(check)) => {
                format!("attune_need_alive(attune, {check}, &{}->attune)", self.names.thread(*id))
            }
            (ThreadKind::First(of), None) => {
                format!("{}&{})", self.here("attune_first", of), self.container(of))
            }
            (ThreadKind::First(of), Some(check)) => {
                format!("{}{check}, &{}, NULL)", self.here("attune_need", of), self.container(of))
            }
        }
    }

    /// A thread's record, checked unless proved.
    pub(super) fn record(&mut self, thread: &ThreadExpr) -> String {
        let checked = thread.check.is_some_and(|check| self.performed(check));
        match &thread.kind {
            ThreadKind::Name(id) if !checked => self.names.thread(*id).to_string(),
            ThreadKind::First(of) if !checked && !self.is_filtered(of) => {
                format!("ATTUNE_FIRST(&{})", self.container(of))
            }
            _ => format!("ATTUNE_RECORD({})", self.head(thread)),
        }
    }

    /// Whether evaluating it can fail or count.
    pub(super) fn is_fallible(&self, id: ExprId) -> bool {
        match &self.program.exprs[id].kind {
            ExprKind::Constant(_) | ExprKind::Now | ExprKind::Cpu | ExprKind::Cpus => false,
            ExprKind::Read(place) => self.place_is_fallible(place),
            ExprKind::Size(of) => self.container_is_fallible(of),
            ExprKind::Same(left, right) => {
                self.thread_is_fallible(left) || self.thread_is_fallible(right)
            }
            ExprKind::Unary(_, operand) | ExprKind::Convert(operand) => self.is_fallible(*operand),
            ExprKind::Binary(BinaryOp::Divide | BinaryOp::Remainder, ..) => true,
            ExprKind::Binary(_, left, right)
            | ExprKind::And(left, right)
            | ExprKind::Or(left, right) => self.is_fallible(*left) || self.is_fallible(*right),
            ExprKind::Let { .. } => true,
        }
    }

    pub(super) fn place_is_fallible(&self, place: &Place) -> bool {
        match place {
            Place::Local(_, index) | Place::Global(_, index) => {
                self.index_is_fallible(index.as_ref())
            }
            Place::Attribute(thread, _) => self.thread_is_fallible(thread),
        }
    }

    pub(super) fn container_is_fallible(&self, of: &ContainerRef) -> bool {
        self.index_is_fallible(of.index.as_ref())
    }

    fn index_is_fallible(&self, index: Option<&Index>) -> bool {
        index.is_some_and(|index| self.index_is_checked(index) || self.is_fallible(index.at))
    }

    /// The analysis takes an import as constant within a handler. A linked one is a variable of the
    /// application, which another of its threads may change between a condition and the use, so a
    /// proof about it does not spare the check.
    fn index_is_checked(&self, index: &Index) -> bool {
        self.performed(index.check)
            || self.target.imports == Imports::Linked && reads_import(self.program, index.at)
    }

    fn thread_is_fallible(&self, thread: &ThreadExpr) -> bool {
        thread.check.is_some_and(|check| self.performed(check))
            || matches!(&thread.kind, ThreadKind::First(of) if self.container_is_fallible(of))
    }

    /// Whether a global is an import, which is written through.
    pub(super) fn is_import(&self, place: &Place) -> bool {
        match place {
            Place::Global(id, _) => self.program.globals[*id].storage == Storage::Import,
            _ => false,
        }
    }
}

fn reads_import(program: &Program, expr: ExprId) -> bool {
    struct ReadsImport(bool);
    impl Visitor for ReadsImport {
        fn place_read(&mut self, program: &Program, place: &Place) {
            self.0 |= match place {
                Place::Local(..) => false,
                Place::Global(id, _) => program.globals[*id].storage == Storage::Import,
                Place::Attribute(_, id) => program.attributes[*id].import,
            };
        }
    }
    let mut found = ReadsImport(false);
    visit::expr(program, expr, &mut found);
    found.0
}

/// A member of the state, as a handler names it.
pub(super) fn in_state(member: &str) -> String {
    format!("attune_state->{member}")
}

fn element_of(name: &str, element: Option<String>) -> String {
    match element {
        None => name.to_string(),
        Some(element) => format!("{name}[{element}]"),
    }
}

/// What an import with these terms makes of a value: the nearest number in its range.
pub(super) fn fitted(terms: Terms, value: String) -> String {
    match terms.range {
        Some((low, high)) => {
            let [low, high] = [low, high].map(|bound| constant(Value::Int(bound)));
            format!("attune_fit(attune, {value}, {low}, {high})")
        }
        None => value,
    }
}

/// A value as a C constant that stands as an operand.
pub fn constant(value: Value) -> String {
    match value {
        Value::Int(i64::MIN) => "INT64_MIN".to_string(),
        Value::Int(value) if value < 0 => format!("({value})"),
        Value::Int(value) => value.to_string(),
        Value::Float(value) if value.is_nan() => "__builtin_nan(\"\")".to_string(),
        Value::Float(f64::INFINITY) => "__builtin_inf()".to_string(),
        Value::Float(f64::NEG_INFINITY) => "(-__builtin_inf())".to_string(),
        // The shortest digits that read back as the same number.
        Value::Float(value) if value.is_sign_negative() => format!("({value:?})"),
        Value::Float(value) => format!("{value:?}"),
    }
}
