//! Random expressions of a wanted type, over what is in sight.

use super::Generator;
use super::scope::{Role, Scope, Shape, Ty, Variable};
use crate::fragment::{Fragment, frag, number};

const INTS: [&str; 12] = [
    "0",
    "1",
    "2",
    "3",
    "7",
    "-1",
    "10",
    "1000",
    "true",
    "false",
    "9223372036854775807",
    "-4611686018427387904",
];
const FLOATS: [&str; 9] =
    ["0.0", "1.0", "-1.0", "0.5", "2.25", "1e10", "1e300", "-1e300", "1e-300"];
const TIMES: [&str; 9] = ["0ns", "1ns", "100us", "1ms", "3ms", "20ms", "1.5s", "2min", "0"];

impl Generator {
    pub fn expr(&mut self, scope: &Scope, ty: Ty, depth: usize) -> Fragment {
        let body = match ty {
            Ty::Int => self.int(scope, depth),
            Ty::Float => self.float(scope, depth),
            Ty::Time => self.time(scope, depth),
        };
        number(if ty == Ty::Time { &["0ns"] } else { &["0", "1"] }, body)
    }

    /// A truth value.
    pub fn condition(&mut self, scope: &Scope, depth: usize) -> Fragment {
        let body = self.plain_condition(scope, depth);
        number(&["1", "0"], body)
    }

    fn plain_condition(&mut self, scope: &Scope, depth: usize) -> Fragment {
        let depth = depth.saturating_sub(1);
        match self.random.weighted(&[
            30,
            10,
            8,
            8,
            6,
            4,
            if scope.threads.is_empty() { 2 } else { 14 },
            6,
        ]) {
            0 => self.comparison(scope, depth),
            1 => {
                frag!["(", self.condition(scope, depth), " && ", self.condition(scope, depth), ")"]
            }
            2 => {
                frag!["(", self.condition(scope, depth), " || ", self.condition(scope, depth), ")"]
            }
            3 => frag!["!(", self.condition(scope, depth), ")"],
            4 => self.expr(scope, Ty::Int, depth),
            5 => {
                let ty = self.a_type(&[Ty::Float, Ty::Time]);
                self.expr(scope, ty, depth)
            }
            6 => self.same_thread(scope),
            _ => self.size_condition(scope),
        }
    }

    fn comparison(&mut self, scope: &Scope, depth: usize) -> Fragment {
        let ty = self.a_type(&[Ty::Int, Ty::Int, Ty::Int, Ty::Float, Ty::Time]);
        let other = if self.random.percent(10) { self.a_type(&Ty::ALL) } else { ty };
        let op = *self.random.pick(&["==", "!=", "<", ">", "<=", ">="]);
        frag!["(", self.expr(scope, ty, depth), " ", op, " ", self.expr(scope, other, depth), ")"]
    }

    fn same_thread(&mut self, scope: &Scope) -> Fragment {
        let op = *self.random.pick(&["==", "!="]);
        let left = self.thread_name(scope);
        let right = self.thread_name(scope);
        frag!["(", left, " ", op, " ", right, ")"]
    }

    /// A name for a thread that may be none.
    fn thread_name(&mut self, scope: &Scope) -> String {
        match scope.threads.is_empty() || self.random.percent(40) {
            true => {
                let holder = self.holder_reference(scope, None);
                format!("*{holder}")
            }
            false => self.random.pick(&scope.threads).clone(),
        }
    }

    fn size_condition(&mut self, scope: &Scope) -> Fragment {
        let holder = self.holder_reference(scope, None);
        let op = *self.random.pick(&["== 0", "> 0", "> 1", "< 3", "!= 2"]);
        frag![format!("|{holder}| {op}")]
    }

    fn int(&mut self, scope: &Scope, depth: usize) -> Fragment {
        if depth == 0 {
            return match self.random.weighted(&[5, 6, 3, 2, 1]) {
                0 => self.random.pick(&INTS).to_string().into(),
                1 => self.read(scope, Ty::Int),
                2 => format!("|{}|", self.holder_reference(scope, None)).into(),
                3 => self.attribute_read(scope, Ty::Int),
                _ => self.builtin("cpus", "1"),
            };
        }
        let next = depth - 1;
        match self.random.weighted(&[8, 10, 4, 3, 3, 4, 2, 2, 2, 3, 3, 1]) {
            0 => self.int(scope, 0),
            1 => self.arithmetic(scope, Ty::Int, next),
            // A condition may be a time, this is a number.
            2 => frag!["(", self.condition(scope, next), " && true)"],
            3 => frag!["-(", self.expr(scope, Ty::Int, next), ")"],
            4 => self.conversion(scope, Ty::Int, next),
            5 => self.effect(scope, Ty::Int, next),
            6 => self.random_call(scope, next),
            7 => {
                // A literal 0 would be no time, and the quotient then one.
                let by = self.random.pick(&["1ms", "3us", "7ns", "0ns", "(5ms - now)"]).to_string();
                let by = if by.contains("now") {
                    frag!["(5ms - ", self.builtin("now", "2ms"), ")"]
                } else {
                    by.into()
                };
                frag!["(", self.expr(scope, Ty::Time, next), " / ", by, ")"]
            }
            8 => self.builtin("cpu", "0"),
            9 => self.attribute_read(scope, Ty::Int),
            10 => self.read(scope, Ty::Int),
            _ => self.builtin("cpus", "1"),
        }
    }

    fn float(&mut self, scope: &Scope, depth: usize) -> Fragment {
        if depth == 0 {
            return match self.random.weighted(&[5, 5, 3]) {
                0 => self.random.pick(&FLOATS).to_string().into(),
                1 => self.read(scope, Ty::Float),
                _ => self.attribute_read(scope, Ty::Float),
            };
        }
        let next = depth - 1;
        match self.random.weighted(&[6, 10, 3, 3, 4, 3]) {
            0 => self.float(scope, 0),
            1 => self.arithmetic(scope, Ty::Float, next),
            2 => frag!["-(", self.expr(scope, Ty::Float, next), ")"],
            3 => self.conversion(scope, Ty::Float, next),
            4 => self.effect(scope, Ty::Float, next),
            _ => {
                let op = *self.random.pick(&["+", "-", "*", "/", "%"]);
                frag![
                    "(",
                    self.expr(scope, Ty::Int, next),
                    " ",
                    op,
                    " ",
                    self.expr(scope, Ty::Float, next),
                    ")"
                ]
            }
        }
    }

    fn time(&mut self, scope: &Scope, depth: usize) -> Fragment {
        if depth == 0 {
            let nodes = if self.taste.node { 4 } else { 0 };
            return match self.random.weighted(&[5, 5, 3, 3, nodes]) {
                0 => self.random.pick(&TIMES).to_string().into(),
                1 => self.read(scope, Ty::Time),
                2 => self.builtin("now", "5ms"),
                3 => self.attribute_read(scope, Ty::Time),
                _ => self.age(),
            };
        }
        let next = depth - 1;
        match self.random.weighted(&[6, 8, 4, 4, 3, 3, 2, 2]) {
            0 => self.time(scope, 0),
            1 => {
                let op = *self.random.pick(&["+", "-", "%"]);
                frag![
                    "(",
                    self.expr(scope, Ty::Time, next),
                    " ",
                    op,
                    " ",
                    self.expr(scope, Ty::Time, next),
                    ")"
                ]
            }
            2 => {
                let ty = self.a_type(&[Ty::Int, Ty::Float]);
                let op = *self.random.pick(&["*", "/"]);
                frag![
                    "(",
                    self.expr(scope, Ty::Time, next),
                    " ",
                    op,
                    " ",
                    self.expr(scope, ty, next),
                    ")"
                ]
            }
            3 => frag![
                "(",
                self.expr(scope, Ty::Int, next),
                " * ",
                self.expr(scope, Ty::Time, next),
                ")"
            ],
            4 => frag!["-(", self.expr(scope, Ty::Time, next), ")"],
            5 => self.effect(scope, Ty::Time, next),
            6 => frag![
                "(",
                self.expr(scope, Ty::Time, next),
                " + ",
                self.expr(scope, Ty::Int, next),
                ")"
            ],
            _ => {
                let sign = *self.random.pick(&["+", "-"]);
                frag![
                    "(",
                    self.builtin("now", "1ms"),
                    " ",
                    sign,
                    " ",
                    self.expr(scope, Ty::Time, next),
                    ")"
                ]
            }
        }
    }

    /// Operands of the type itself.
    fn arithmetic(&mut self, scope: &Scope, ty: Ty, depth: usize) -> Fragment {
        let op = *self.random.pick(&["+", "-", "*", "/", "%", "+", "-"]);
        frag!["(", self.expr(scope, ty, depth), " ", op, " ", self.expr(scope, ty, depth), ")"]
    }

    /// A value of another type, converted by being assigned.
    fn conversion(&mut self, scope: &Scope, ty: Ty, depth: usize) -> Fragment {
        let from = match ty {
            Ty::Int => self.a_type(&[Ty::Float, Ty::Time]),
            Ty::Float | Ty::Time => Ty::Int,
        };
        match self.assignable(scope, ty) {
            Some(place) => frag!["(", place, " = ", self.expr(scope, from, depth), ")"],
            None => self.read(scope, ty),
        }
    }

    /// An expression that changes something.
    pub fn effect(&mut self, scope: &Scope, ty: Ty, depth: usize) -> Fragment {
        let Some(place) = self.assignable(scope, ty) else { return self.read(scope, ty) };
        match self.random.below(6) {
            0 => frag![place, "++"],
            1 => frag![place, "--"],
            2 => frag!["(++", place, ")"],
            3 => frag!["(--", place, ")"],
            4 => frag!["(", place, " = ", self.expr(scope, ty, depth), ")"],
            _ => frag![
                "(",
                place,
                " ",
                self.compound_operator(ty),
                " ",
                self.expr(scope, ty, depth),
                ")"
            ],
        }
    }

    pub fn compound_operator(&mut self, ty: Ty) -> &'static str {
        let operators: &[&str] = match ty {
            Ty::Time => &["+=", "-="],
            // The nodes of the engines without floats do not divide what they share.
            Ty::Int if self.taste.node && !self.taste.floats => &["+=", "-=", "*="],
            Ty::Int | Ty::Float => &["+=", "-=", "*=", "/=", "%="],
        };
        operators[self.random.below(operators.len())]
    }

    /// In a query `random` would be a side effect.
    fn random_call(&mut self, scope: &Scope, depth: usize) -> Fragment {
        if scope.pure || self.declared.hidden.iter().any(|name| name == "random") {
            return "2".into();
        }
        match self.random.percent(70) {
            true => {
                let bound = *self.random.pick(&["2", "3", "10", "1000", "0", "-4"]);
                frag![format!("random({bound})")]
            }
            false => frag!["random( ", self.expr(scope, Ty::Int, depth), ")"],
        }
    }

    fn builtin(&mut self, name: &str, otherwise: &str) -> Fragment {
        let hidden = self.declared.hidden.iter().any(|hidden| hidden == name);
        if hidden { otherwise.into() } else { name.into() }
    }

    /// How old a node's copy is.
    fn age(&mut self) -> Fragment {
        let shared = |it: &&Variable| it.name.starts_with("sh");
        let shared = self.declared.globals.iter().find(shared).map(|it| it.name.clone());
        shared.map_or("1ms".into(), |name| format!("age(GLOBAL.{name})").into())
    }

    /// A variable of that type, or a constant.
    pub fn read(&mut self, scope: &Scope, ty: Ty) -> Fragment {
        let of_type = |variable: &&Variable| variable.ty == ty;
        let mut found: Vec<Variable> = scope.locals.iter().filter(of_type).cloned().collect();
        found.extend(self.declared.globals.iter().filter(of_type).cloned());
        match self.random.pick_some(&found).cloned() {
            Some(variable) => self.place(scope, &variable),
            None => match ty {
                Ty::Int => self.random.pick(&INTS).to_string().into(),
                Ty::Float => self.random.pick(&FLOATS).to_string().into(),
                Ty::Time => self.random.pick(&TIMES).to_string().into(),
            },
        }
    }

    /// Something of that type that may be assigned here.
    pub fn assignable(&mut self, scope: &Scope, ty: Ty) -> Option<Fragment> {
        if !scope.pure && self.random.percent(30) {
            let of_type: Vec<String> = self.attributes_of(ty);
            if let Some(attribute) = self.random.pick_some(&of_type).cloned()
                && let Some(thread) = self.present_thread(scope, false)
            {
                return Some(frag![thread, ".", attribute]);
            }
        }
        let found = |variable: &&Variable| {
            variable.ty == ty && variable.assignable && (variable.local || !scope.pure)
        };
        let mut places: Vec<Variable> = scope.locals.iter().filter(found).cloned().collect();
        places.extend(self.declared.globals.iter().filter(found).cloned());
        let variable = self.random.pick_some(&places).cloned()?;
        Some(self.place(scope, &variable))
    }

    pub fn place(&mut self, scope: &Scope, variable: &Variable) -> Fragment {
        match variable.shape {
            Shape::One => variable.name.as_str().into(),
            Shape::PerCpu if self.random.percent(70) => variable.name.as_str().into(),
            Shape::PerCpu => {
                let cpu = self.cpu_index();
                frag![variable.name.as_str(), "[", cpu, "]"]
            }
            Shape::Array(length) => {
                frag![variable.name.as_str(), "[", self.index(scope, length), "]"]
            }
        }
    }

    fn cpu_index(&mut self) -> Fragment {
        match self.random.below(20) {
            0 => "1".into(),
            1..=9 => self.builtin("cpu", "0"),
            _ => "0".into(),
        }
    }

    /// Mostly inside the array.
    pub fn index(&mut self, scope: &Scope, length: usize) -> Fragment {
        let fits = |variable: &&Variable| variable.below.is_some_and(|below| below <= length);
        let counters: Vec<String> =
            scope.locals.iter().filter(fits).map(|each| each.name.clone()).collect();
        match self.random.below(if self.wild { 4 } else { 40 }) {
            0 if self.random.percent(30) => "0 - |RQ|".into(),
            0 => frag!["(", self.expr(scope, Ty::Int, 1), ") * |RQ|"],
            1 if !scope.pure && !self.declared.hidden.iter().any(|name| name == "random") => {
                format!("random({length})").into()
            }
            2..=20 if !counters.is_empty() => self.random.pick(&counters).as_str().into(),
            _ => self.random.below(length).to_string().into(),
        }
    }

    fn attributes_of(&self, ty: Ty) -> Vec<String> {
        let of_type = self.declared.attributes.iter().filter(|attribute| attribute.ty == ty);
        of_type.map(|attribute| attribute.name.clone()).collect()
    }

    fn attribute_read(&mut self, scope: &Scope, ty: Ty) -> Fragment {
        let attributes = self.attributes_of(ty);
        let Some(attribute) = self.random.pick_some(&attributes).cloned() else {
            return self.read(scope, ty);
        };
        match self.present_thread(scope, true) {
            Some(thread) => frag![thread, ".", attribute],
            // Nobody is known to be there: ask first, in the same expression.
            None if ty == Ty::Int => {
                let holder = self.holder_reference(scope, None);
                let star = if self.random.percent(50) { "*" } else { "" };
                frag![format!("(|{holder}| > 0 && {star}{holder}.{attribute} > 0)")]
            }
            None => self.read(scope, ty),
        }
    }

    /// A thread that is surely there; now and then one that only may be.
    /// `starred`: with the star that a container's first thread may be written with.
    fn present_thread(&mut self, scope: &Scope, starred: bool) -> Option<Fragment> {
        let star = if starred && self.random.percent(60) { "*" } else { "" };
        if self.random.percent(if self.wild { 25 } else { 1 }) {
            let holder = self.holder_reference(scope, None);
            return Some(format!("{star}{holder}").into());
        }
        if !scope.filled.is_empty() && (scope.threads.is_empty() || self.random.percent(40)) {
            let holder = self.random.pick(&scope.filled).clone();
            return Some(format!("{star}{holder}").into());
        }
        Some(self.random.pick_some(&scope.threads)?.as_str().into())
    }

    /// A container, with an index if it needs one. The index has no effects: the text may be used
    /// twice.
    pub fn holder_reference(&mut self, scope: &Scope, role: Option<Role>) -> String {
        let fits = |holder: &&super::scope::Holder| role.is_none_or(|role| holder.role == role);
        let holders: Vec<_> = self.declared.holders.iter().filter(fits).cloned().collect();
        let Some(holder) = self.random.pick_some(&holders).cloned() else {
            return "current".into();
        };
        let counter = |length| {
            scope
                .locals
                .iter()
                .find(|local| local.below.is_some_and(|below| below <= length))
                .cloned()
        };
        match holder.shape {
            Shape::One => holder.name,
            Shape::PerCpu if self.random.percent(80) => holder.name,
            Shape::PerCpu => format!("{}[0]", holder.name),
            Shape::Array(length) => match counter(length) {
                Some(local) if self.random.percent(50) => {
                    format!("{}[{}]", holder.name, local.name)
                }
                _ if self.random.percent(1) => format!("{}[|RQ|]", holder.name),
                _ => format!("{}[{}]", holder.name, self.random.below(length)),
            },
        }
    }
}
