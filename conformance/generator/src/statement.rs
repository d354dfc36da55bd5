//! Random statements and bodies of handlers.

use super::Generator;
use super::scope::{Role, Scope, Shape, Ty, Variable};
use crate::fragment::{Fragment, frag, statement};

impl Generator {
    /// So many statements, in a scope of their own.
    pub fn block(&mut self, scope: &Scope, count: usize) -> Fragment {
        let mut inner = scope.clone();
        self.statements(&mut inner, count)
    }

    /// Statements in the scope that is open: what they declare stays in sight.
    pub fn statements(&mut self, scope: &mut Scope, count: usize) -> Fragment {
        let mut parts = Vec::new();
        for _ in 0..count {
            if self.fuel == 0 {
                break;
            }
            self.fuel -= 1;
            let body = self.statement(scope);
            parts.push(statement(frag!["    ", body, "\n"]));
        }
        parts.into()
    }

    fn statement(&mut self, scope: &mut Scope) -> Fragment {
        let deep = scope.loops >= 2;
        let moves = u32::from(scope.may_move && !scope.pure);
        let acts = u32::from(!scope.pure);
        let weights = [
            22,                                   // assignment
            8,                                    // declaration
            14,                                   // if
            if deep { 0 } else { 5 },             // loop
            if deep { 0 } else { 9 },             // foreach
            18 * moves,                           // transfer under a condition
            moves,                                // transfer without one
            4 * moves,                            // through a local container
            6 * acts,                             // alarm
            2 * acts,                             // preempt
            4,                                    // effects under a short circuit
            if scope.in_loop { 4 } else { 0 },    // break, continue
            if scope.may_return { 2 } else { 0 }, // return
            2,                                    // compound, comment
            // attribute of the visited thread, often a sort key
            4 * acts * u32::from(scope.loops > 0),
        ];
        match self.random.weighted(&weights) {
            0 => self.assignment(scope),
            1 => self.declaration(scope),
            2 => self.branch(scope),
            3 => self.looping(scope),
            4 => self.foreach(scope),
            5 => self.guarded_transfer(scope),
            6 => self.bare_transfer(scope),
            7 => self.through_local(scope),
            8 => self.alarm(scope),
            9 => self.preempt(scope),
            10 => self.short_circuit(scope),
            11 => {
                let leave = *self.random.pick(&["break;", "continue;"]);
                frag!["if (", self.condition(scope, 1), ") ", leave]
            }
            12 => {
                let dead = if self.random.percent(20) { self.assignment(scope) } else { "".into() };
                frag!["if (", self.condition(scope, 2), ") { return; ", dead, " }"]
            }
            13 => match self.random.below(3) {
                0 => frag!["/* ", self.random.below(100).to_string(), " * / */ ;"],
                1 => frag!["; // nothing"],
                _ => {
                    let count = 1 + self.random.below(2);
                    frag!["{\n", self.block(scope, count), "    }"]
                }
            },
            _ => self.attribute_of_visited(scope),
        }
    }

    fn assignment(&mut self, scope: &Scope) -> Fragment {
        let ty = self.a_type(&Ty::ALL);
        if self.random.percent(20) {
            return frag![self.effect(scope, ty, 2), ";"];
        }
        let Some(place) = self.assignable(scope, ty) else { return ";".into() };
        match self.random.below(10) {
            0..=5 => frag![place, " = ", self.expr(scope, ty, 3), ";"],
            6..=7 => {
                frag![place, " ", self.compound_operator(ty), " ", self.expr(scope, ty, 2), ";"]
            }
            8 => match self.assignable(scope, ty) {
                Some(other) => frag![place, " = ", other, " = ", self.expr(scope, ty, 2), ";"],
                None => frag![place, " = ", self.expr(scope, ty, 2), ";"],
            },
            _ => {
                let from = self.a_type(&Ty::ALL);
                frag![place, " = ", self.expr(scope, from, 2), ";"]
            }
        }
    }

    fn attribute_of_visited(&mut self, scope: &Scope) -> Fragment {
        let Some(thread) = scope.threads.last().cloned() else { return self.assignment(scope) };
        let attributes = self.declared.attributes.clone();
        let Some(attribute) = self.random.pick_some(&attributes) else { return ";".into() };
        frag![thread, ".", attribute.name.as_str(), " = ", self.expr(scope, attribute.ty, 2), ";"]
    }

    fn declaration(&mut self, scope: &mut Scope) -> Fragment {
        let ty = self.a_type(&Ty::ALL);
        let name = self.fresh("v");
        let shape = if self.random.percent(20) {
            Shape::Array(1 + self.random.below(4))
        } else {
            Shape::One
        };
        let constant = shape == Shape::One && self.random.percent(10);
        let text = match shape {
            Shape::Array(length) => {
                frag![ty.word(), " ", name.as_str(), "[", length.to_string(), "];"]
            }
            _ if constant => {
                frag!["const ", ty.word(), " ", name.as_str(), " = ", self.expr(scope, ty, 1), ";"]
            }
            _ if self.random.percent(80) => {
                frag![ty.word(), " ", name.as_str(), " = ", self.expr(scope, ty, 2), ";"]
            }
            _ => frag![ty.word(), " ", name.as_str(), ";"],
        };
        scope.locals.push(Variable {
            name,
            ty,
            shape,
            assignable: !constant,
            local: true,
            below: None,
        });
        text
    }

    fn branch(&mut self, scope: &Scope) -> Fragment {
        let condition = self.condition(scope, 3);
        let then_count = 1 + self.random.below(3);
        let then = self.block(scope, then_count);
        let mut parts = vec![frag!["if (", condition, ") {\n", then, "    }"]];
        while self.random.percent(25) {
            let condition = self.condition(scope, 2);
            parts.push(frag![" else if (", condition, ") {\n", self.block(scope, 1), "    }"]);
        }
        if self.random.percent(50) {
            let count = 1 + self.random.below(2);
            parts.push(frag![" else {\n", self.block(scope, count), "    }"]);
        }
        parts.into()
    }

    /// Mostly of a few iterations; now and then without end.
    fn looping(&mut self, scope: &Scope) -> Fragment {
        let counter = self.fresh("i");
        let times = 1 + self.random.below(4);
        let mut inner = scope.clone();
        inner.loops += 1;
        inner.in_loop = true;
        inner.locals.push(Variable {
            name: counter.clone(),
            ty: Ty::Int,
            shape: Shape::One,
            assignable: false,
            local: true,
            below: Some(times),
        });
        let count = 1 + self.random.below(3);
        if self.random.percent(1) {
            return frag![
                "if (",
                self.condition(scope, 1),
                " && ",
                self.condition(scope, 1),
                ") while (1) ;"
            ];
        }
        match self.random.below(4) {
            0 => frag![
                format!("for ({counter} = 0; {counter} < {times}; {counter}++) {{\n"),
                self.block(&inner, count),
                "    }"
            ]
            .declared(&counter),
            1 => {
                let body = self.block(&without_continue(&inner), count);
                frag![
                    format!("while ({counter} < {times}) {{\n"),
                    body,
                    format!("    {counter}++;\n    }}")
                ]
                .declared(&counter)
            }
            2 => {
                // The counter grows in the condition, so that `continue` cannot skip it.
                inner.locals.pop();
                let body = self.block(&inner, count);
                frag!["do {\n", body, format!("    }} while (++{counter} < {times});")]
                    .declared(&counter)
            }
            _ => {
                inner.locals.pop();
                let body = self.block(&inner, count);
                let also = self.condition(scope, 1);
                frag![format!("while ({counter}++ < {times} && "), also, ") {\n", body, "    }"]
                    .declared(&counter)
            }
        }
    }

    fn foreach(&mut self, scope: &Scope) -> Fragment {
        let role = if self.random.percent(70) { Some(Role::Ready) } else { None };
        let holder = match scope.visited.last() {
            Some(around) if self.random.percent(60) => around.clone(),
            _ => self.holder_reference(scope, role),
        };
        let name = self.fresh("t");
        let mut inner = scope.clone();
        inner.visited.push(holder.clone());
        inner.loops += 1;
        inner.in_loop = true;
        inner.threads.push(name.clone());
        let count = 1 + self.random.below(3);
        let mut body = vec![];
        if scope.may_move && !scope.pure && self.random.percent(50) && self.is_ready(&holder) {
            let to = self.holder_reference(scope, Some(Role::Ready));
            let condition = self.condition(&inner, 2);
            body.push(statement(frag![
                "    if (",
                condition,
                ") ",
                name.as_str(),
                " => ",
                to.as_str(),
                ";\n"
            ]));
        }
        body.push(self.block(&inner, count));
        frag![format!("foreach {name} in {holder} {{\n"), body, "    }"]
    }

    /// Ready threads to another place for ready threads.
    fn guarded_transfer(&mut self, scope: &Scope) -> Fragment {
        let from = self.holder_reference(scope, Some(Role::Ready));
        let to = match self.random.percent(8) {
            true => from.clone(),
            false => self.holder_reference(scope, Some(Role::Ready)),
        };
        if self.taste.reckless && self.random.percent(40) {
            return self.unguarded_transfer(&from, &to);
        }
        let careful = to != from && !self.random.percent(if self.wild { 60 } else { 25 });
        let room = if careful && self.is_threadref(&to) {
            format!(" && |{to}| == 0")
        } else {
            String::new()
        };
        let mut inner = scope.clone();
        inner.filled.push(from.clone());
        let before = if self.random.percent(20) {
            self.fuel = self.fuel.saturating_sub(1);
            // No move in between: the guard would say nothing any more.
            inner.may_move = false;
            frag![statement(frag!["    ", self.assignment(&inner), "\n"])]
        } else {
            "".into()
        };
        frag![
            format!("if (|{from}| > 0{room}) {{\n"),
            before,
            format!("    {from} => {to};\n    }}")
        ]
    }

    /// Without a guard, or with one that makes the transfer impossible.
    fn unguarded_transfer(&mut self, from: &str, to: &str) -> Fragment {
        match self.random.below(5) {
            0 => format!("{from} => {to};"),
            1 => format!("if (|{from}| == 0) {from} => {to};"),
            2 => format!("if (|{to}| > 0 && |{from}| > 0) {from} => {to};"),
            3 => {
                let local = self.fresh("tmp");
                format!("{{ threadref {local};\n    {local} => {to}; }}")
            }
            _ => {
                let local = self.fresh("tmp");
                format!(
                    "if (|{from}| > 1) {{ threadref {local};\n    {from} => {local};\n    {from} \
                        => {local};\n    {local} => {to}; }}"
                )
            }
        }
        .into()
    }

    fn bare_transfer(&mut self, scope: &Scope) -> Fragment {
        let from = self.holder_reference(scope, Some(Role::Ready));
        let to = self.holder_reference(scope, Some(Role::Ready));
        let size = 1 + self.random.below(2);
        match self.random.below(4) {
            0 => format!("{from} => {to};").into(),
            _ => frag![
                "if (",
                self.condition(scope, 1),
                format!(" && |{from}| > {size}) {from} => {to};")
            ],
        }
    }

    /// Out into a local container and back; now and then not all of it comes back.
    fn through_local(&mut self, scope: &Scope) -> Fragment {
        let from = self.holder_reference(scope, Some(Role::Ready));
        let mut to = self.holder_reference(scope, Some(Role::Ready));
        if self.is_threadref(&to) {
            to = from.clone();
        }
        let local = self.fresh("tmp");
        let mut inner = scope.clone();
        inner.filled.push(local.clone());
        inner.may_move = false;
        if self.random.percent(40) {
            let between = self.block(&inner, 1);
            return frag![
                format!("if (|{from}| > 0) {{\n    threadref {local};\n    {from} => {local};\n"),
                between,
                format!("    {local} => {to};\n    }}")
            ];
        }
        let kind = match (self.random.below(4), self.declared.attributes.is_empty()) {
            (0, _) | (_, true) => format!("queue {local};"),
            (1, _) => format!("stack {local};"),
            (other, _) => {
                let kind = if other == 2 { "pqueue" } else { "pstack" };
                let attributes = self.declared.attributes.clone();
                let by = &self.random.pick(&attributes).name;
                let order = *self.random.pick(&["", "reverse ", "increasing ", "decreasing "]);
                format!("{kind} {local} {order}sortable on {by};")
            }
        };
        let drain = if self.random.percent(97) { "> 0" } else { "> 1" };
        let visit = if self.random.percent(40) {
            let thread = self.fresh("t");
            inner.threads.push(thread.clone());
            inner.loops += 1;
            inner.in_loop = true;
            frag![format!("    foreach {thread} in {local} {{\n"), self.block(&inner, 1), "    }\n"]
        } else {
            "".into()
        };
        frag![
            format!("{kind}\n    while (|{from}| > 0) {from} => {local};\n"),
            visit,
            format!("    while (|{local}| {drain}) {local} => {to};")
        ]
    }

    fn alarm(&mut self, scope: &Scope) -> Fragment {
        let at = match self.random.below(4) {
            0 => "0".into(),
            1 => self.expr(scope, Ty::Time, 2),
            _ if self.declared.hidden.iter().any(|name| name == "now") => "7ms".into(),
            _ => frag!["now + ", self.random.pick(&["1ms", "3us", "20ms", "0ns"]).to_string()],
        };
        match self.random.pick_some(&scope.threads).cloned() {
            Some(thread) => frag!["alarm ", thread, " at ", at, ";"],
            None => {
                let holder = self.holder_reference(scope, None);
                frag![format!("if (|{holder}| > 0) alarm {holder} at "), at, ";"]
            }
        }
    }

    fn preempt(&mut self, scope: &Scope) -> Fragment {
        match self.random.below(5) {
            // A sign behind `preempt` would make it a variable's name.
            0 => frag!["preempt 1 * ", self.expr(scope, Ty::Int, 1), ";"],
            1 => "preempt 0;".into(),
            2 => "preempt 1;".into(),
            3 => frag!["preempt cpu at ", self.expr(scope, Ty::Time, 1), ";"],
            _ => frag![
                "preempt 1 * ",
                self.expr(scope, Ty::Int, 1),
                " at now + ",
                self.expr(scope, Ty::Time, 1),
                ";"
            ],
        }
    }

    fn short_circuit(&mut self, scope: &Scope) -> Fragment {
        let left = self.condition(scope, 1);
        let right = self.effect(scope, Ty::Int, 1);
        let op = *self.random.pick(&["&&", "||"]);
        match self.assignable(scope, Ty::Int) {
            Some(place) => frag![place, " = ", left, " ", op, " ", right, " > 1;"],
            None => ";".into(),
        }
    }

    pub fn is_threadref(&self, reference: &str) -> bool {
        self.holder_of(reference).is_some_and(|holder| holder.kind == super::scope::Kind::Threadref)
    }

    fn is_ready(&self, reference: &str) -> bool {
        self.holder_of(reference).is_some_and(|holder| holder.role == Role::Ready)
    }

    fn holder_of(&self, reference: &str) -> Option<&super::scope::Holder> {
        let name = reference.split('[').next().unwrap_or(reference);
        self.declared.holders.iter().find(|holder| holder.name == name)
    }
}

/// `continue` would skip the step of a hand-written loop.
fn without_continue(scope: &Scope) -> Scope {
    Scope { in_loop: false, ..scope.clone() }
}

impl Fragment {
    /// With the loop's counter declared in front, in a block of its own.
    fn declared(self, counter: &str) -> Fragment {
        frag![format!("{{\n    int {counter} = 0;\n    "), self, "\n    }"]
    }
}
