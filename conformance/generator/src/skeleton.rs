//! The handlers that keep threads where they belong, with random statements in between.

use super::Generator;
use super::scope::{File, Kind, Role, Scope, Shape, Ty};
use crate::fragment::{Fragment, frag, member, number};

/// How a scheduler keeps its books.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `set_waiting`, `event_raised`; the running thread sits in `current`.
    Usual,
    /// Blocking is told by `suspend_thread` and `resume_thread`.
    SuspendOnly,
    /// The running thread stays in the container that it was dispatched from.
    InPlace,
}

const WITHOUT_THREAD: [&str; 3] = ["init", "schedule", "switch_out"];

impl Generator {
    pub fn style(&mut self) -> Style {
        [Style::Usual, Style::SuspendOnly, Style::InPlace][self.random.weighted(&[75, 12, 13])]
    }

    pub fn handlers(&mut self, file: &mut File, style: Style) {
        let mut events =
            vec!["newthread", "schedule", "switch_out", "suspend_thread", "resume_thread"];
        if style != Style::SuspendOnly {
            events.extend(["set_waiting", "event_raised"]);
        }
        for (event, percent) in [
            ("init", 60),
            ("set_dead", 80),
            ("set_next_thread", 60),
            ("quantum_expired", 60),
            ("alarm", 80),
            ("leaves", 60),
            ("arrives", 60),
        ] {
            if self.random.percent(percent) {
                events.push(event);
            }
        }
        for event in events {
            let handler = self.handler(event, style);
            file.members.push(match event {
                "newthread" | "schedule" | "switch_out" => handler,
                _ => member(handler),
            });
        }
    }

    /// Handlers of a derived scheduler in the place of its base's.
    pub fn replacements(&mut self, file: &mut File, style: Style) {
        let mut events = vec!["newthread", "schedule", "switch_out", "resume_thread", "alarm"];
        if style != Style::SuspendOnly {
            events.push("event_raised");
        }
        for event in events {
            if self.random.percent(30) {
                let handler = self.handler(event, style);
                file.members.push(member(handler));
            }
        }
    }

    fn handler(&mut self, event: &str, style: Style) -> Fragment {
        self.fuel = self.size + self.random.below(self.size);
        let thread = self.fresh("t");
        let named = match event {
            "switch_out" => style == Style::InPlace || self.random.percent(40),
            event => !WITHOUT_THREAD.contains(&event),
        };
        let fixed = matches!(event, "set_waiting" | "set_dead");
        let mut scope = Scope { may_return: false, may_move: true, ..Scope::default() };
        if named {
            scope.threads.push(thread.clone());
        }
        if event == "switch_out" && style != Style::InPlace && self.random.percent(50) {
            scope.filled.push("current".into());
        }
        let before = self.random.below(3);
        let before = self.statements(&mut scope, before);
        let core = self.core(event, style, &thread, named, &scope);
        let after = self.random.below(3);
        scope.filled.clear();
        scope.may_return = event != "schedule";
        let after = self.statements(&mut scope, after);
        let parameter = match (named, fixed) {
            (false, _) => String::new(),
            (true, true) => format!("(fixed {thread})"),
            (true, false) => format!("({thread})"),
        };
        frag![format!("event {event}{parameter} {{\n"), before, core, after, "}\n"]
    }

    fn core(
        &mut self,
        event: &str,
        style: Style,
        thread: &str,
        named: bool,
        scope: &Scope,
    ) -> Fragment {
        match event {
            "newthread" => self.store(thread, scope),
            "schedule" => self.choose(style, scope),
            "switch_out" => self.stop(style, thread, named, scope),
            "set_waiting" => format!("    {thread}.blocked = 1;\n").into(),
            "set_dead" => format!("    {thread}.dead = 1;\n").into(),
            "event_raised" => frag![
                format!("    {thread}.blocked = 0;\n    if (!{thread}.suspended) {{\n"),
                self.store(thread, scope),
                "    }\n"
            ],
            "suspend_thread" => {
                format!("    {thread}.suspended = 1;\n    {thread} => SQ;\n").into()
            }
            "resume_thread" if style == Style::SuspendOnly => {
                frag![format!("    {thread}.suspended = 0;\n"), self.store(thread, scope)]
            }
            "resume_thread" => frag![
                format!(
                    "    {thread}.suspended = 0;\n    if ({thread}.blocked)\n        {thread} => \
                        WQ;\n    else {{\n"
                ),
                self.store(thread, scope),
                "    }\n"
            ],
            "arrives" => frag![
                format!(
                    "    if ({thread}.suspended) {thread} => SQ;\n    else if ({thread}.blocked) \
                        {thread} => WQ;\n    else {{\n"
                ),
                self.store(thread, scope),
                "    }\n"
            ],
            "leaves" if self.random.percent(30) => {
                let to = self.ready_queue(scope);
                format!("    if (!{thread}.blocked && !{thread}.suspended) {thread} => {to};\n")
                    .into()
            }
            "set_next_thread" => match self.next_holder() {
                Some(next) => format!("    if (|{next}| == 0) {thread} => {next};\n").into(),
                None => "".into(),
            },
            "alarm" if self.random.percent(60) && style != Style::InPlace => {
                let to = self.ready_queue(scope);
                format!(
                    "    if ({thread} != current && !{thread}.blocked && !{thread}.suspended && \
                        !{thread}.dead) \
                     {thread} => {to};\n"
                )
                .into()
            }
            _ => "".into(),
        }
    }

    /// Puts a thread among the ready ones, on every path; seldom on some path only.
    fn store(&mut self, thread: &str, scope: &Scope) -> Fragment {
        let to = self.ready_queue(scope);
        let otherwise = self.ready_queue(scope);
        match self.random.below(20) {
            0 => frag!["    if (", self.condition(scope, 1), format!(") {thread} => {to};\n")],
            // No engine lives with a new thread that is destroyed, but it is not a thread that is
            // lost.
            1 => frag![
                "    if (",
                self.condition(scope, 1),
                format!(") destroy {thread};\n    else if ("),
                self.condition(scope, 1),
                format!(") {thread} => {to};\n")
            ],
            2..=8 => frag![
                "    if (",
                self.condition(scope, 2),
                format!(") {thread} => {to};\n    else {thread} => {otherwise};\n")
            ],
            _ => format!("    {thread} => {to};\n").into(),
        }
    }

    /// A ready container that has room, as written.
    fn ready_queue(&mut self, scope: &Scope) -> String {
        for _ in 0..4 {
            let holder = self.holder_reference(scope, Some(Role::Ready));
            if !self.is_threadref(&holder) {
                return holder;
            }
        }
        "RQ".into()
    }

    fn next_holder(&mut self) -> Option<String> {
        let fits = |holder: &&super::scope::Holder| {
            holder.kind == Kind::Threadref
                && holder.role == Role::Ready
                && !matches!(holder.shape, Shape::Array(_))
        };
        self.declared.holders.iter().find(fits).map(|holder| holder.name.clone())
    }

    /// Every ready container in some order: the first that holds a thread gives the one to run.
    fn choose(&mut self, style: Style, scope: &Scope) -> Fragment {
        let mut sources: Vec<(String, Option<usize>)> = Vec::new();
        for holder in &self.declared.holders {
            if holder.role == Role::Ready {
                match holder.shape {
                    Shape::Array(length) => sources.push((holder.name.clone(), Some(length))),
                    Shape::One | Shape::PerCpu => sources.push((holder.name.clone(), None)),
                }
            }
        }
        let turn = self.random.below(sources.len());
        sources.rotate_left(turn);
        let mut parts = Vec::new();
        let direct = style == Style::InPlace || self.random.percent(30);
        for (name, length) in sources {
            let taken = |generator: &mut Generator, from: &str| match (style, direct) {
                (Style::InPlace, _) if generator.random.percent(40) => {
                    let chosen = generator.fresh("t");
                    let dispatch = generator.dispatch(&chosen, scope);
                    frag![
                        format!("foreach {chosen} in {from} {{ {chosen}.blocked = 0; "),
                        dispatch,
                        " }"
                    ]
                }
                (Style::InPlace, _) => {
                    let dispatch = generator.dispatch(from, scope);
                    frag![format!("{{ {from}.blocked = 0; "), dispatch, " }"]
                }
                (_, true) => {
                    let dispatch = generator.dispatch("current", scope);
                    frag![format!("{{ {from} => current; "), dispatch, " }"]
                }
                (_, false) => format!("{from} => current;").into(),
            };
            let empty = if direct { String::new() } else { " && |current| == 0".into() };
            match length {
                None => {
                    let act = taken(self, &name);
                    parts.push(frag![format!("    if (|{name}| > 0{empty}) "), act, "\n"]);
                }
                Some(length) => {
                    let counter = self.fresh("i");
                    let act = taken(self, &format!("{name}[{counter}]"));
                    parts.push(frag![
                        format!(
                            "    int {counter};\n    for ({counter} = 0; {counter} < {length}; \
                                {counter}++)\n"
                        ),
                        format!("        if (|{name}[{counter}]| > 0{empty}) "),
                        act,
                        "\n"
                    ]);
                }
            }
        }
        if !direct {
            parts.push(frag!["    if (|current| > 0) ", self.dispatch("current", scope), "\n"]);
        }
        parts.into()
    }

    fn dispatch(&mut self, from: &str, scope: &Scope) -> Fragment {
        match self.random.percent(50) {
            true => frag![format!("dispatch {from} for "), self.expr(scope, Ty::Time, 2), ";"],
            false => format!("dispatch {from};").into(),
        }
    }

    fn stop(&mut self, style: Style, thread: &str, named: bool, scope: &Scope) -> Fragment {
        let who = if style == Style::InPlace || (named && self.random.percent(50)) {
            thread
        } else {
            "current"
        };
        let to = self.ready_queue(scope);
        let destroy = match self.random.percent(80) {
            true => format!("if ({who}.dead) destroy {who};\n    else "),
            false => String::new(),
        };
        let body = format!(
            "    {destroy}if ({who}.suspended) {who} => SQ;\n    else if ({who}.blocked) {who} => \
                WQ;\n    \
             else {who} => {to};\n"
        );
        if who == "current" && self.random.percent(90) {
            // One that suspended itself has gone to SQ already.
            return frag!["    if (|current| > 0) {\n", body, "    }\n"];
        }
        body.into()
    }

    /// Code around events that the skeleton handles.
    pub fn aspects(&mut self, file: &mut File) {
        let events = [
            "newthread",
            "schedule",
            "switch_out",
            "suspend_thread",
            "resume_thread",
            "event_raised",
            "set_waiting",
        ];
        let count = self.random.below(3);
        for _ in 0..count {
            let event = *self.random.pick(&events);
            let word = *self.random.pick(&["before", "after"]);
            let thread = self.fresh("t");
            let named = !WITHOUT_THREAD.contains(&event) && self.random.percent(70);
            let mut scope =
                Scope { may_return: true, may_move: event != "schedule", ..Scope::default() };
            if named {
                scope.threads.push(thread.clone());
            }
            self.fuel = self.size;
            let count = 1 + self.random.below(3);
            let body = self.statements(&mut scope, count);
            let fixed = if event == "set_waiting" { "fixed " } else { "" };
            let parameter = if named { format!("({fixed}{thread})") } else { String::new() };
            file.members.push(member(frag![
                format!("{word} {event}{parameter} {{\n"),
                body,
                "}\n"
            ]));
        }
    }

    pub fn queries(&mut self, file: &mut File) {
        let queries = [
            "threads_new",
            "threads_ready",
            "threads_waiting",
            "threads_suspended",
            "threads_total",
            "is_new",
            "is_ready",
            "is_waiting",
            "can_switch_to",
            "first_waiting",
            "timeslice_left",
        ];
        let count = self.random.below(5);
        let mut chosen: Vec<&str> = Vec::new();
        for _ in 0..count {
            let query = *self.random.pick(&queries);
            if chosen.contains(&query) {
                continue;
            }
            chosen.push(query);
            let thread = self.fresh("t");
            let named = query.starts_with("is_") || query == "can_switch_to";
            let mut scope = Scope { pure: true, ..Scope::default() };
            if named {
                scope.threads.push(thread.clone());
            }
            self.fuel = self.size;
            let count = self.random.below(3);
            let body = self.statements(&mut scope, count);
            let answer = self.answer(query, &scope, named.then_some(thread.as_str()));
            let parameter = if named { format!("({thread})") } else { String::new() };
            file.members.push(member(frag![
                format!("query {query}{parameter} {{\n"),
                body,
                answer,
                "}\n"
            ]));
        }
    }

    fn answer(&mut self, query: &str, scope: &Scope, thread: Option<&str>) -> Fragment {
        match query {
            "first_waiting" => {
                let holder = self.holder_reference(scope, None);
                let other = self.holder_reference(scope, Some(Role::Parked));
                frag![
                    "    if (",
                    self.condition(scope, 1),
                    format!(") return *{holder};\n    return *{other};\n")
                ]
            }
            "timeslice_left" => frag!["    return ", self.expr(scope, Ty::Time, 2), ";\n"],
            _ => match thread {
                Some(thread) if self.random.percent(50) => {
                    format!("    return !{thread}.blocked;\n").into()
                }
                _ => frag![
                    "    if (",
                    self.condition(scope, 1),
                    ") return ",
                    self.expr(scope, Ty::Int, 2),
                    ";\n    else return ",
                    self.expr(scope, Ty::Int, 1),
                    ";\n"
                ],
            },
        }
    }

    pub fn invariants(&mut self, file: &mut File) {
        let count = self.random.below(3);
        for _ in 0..count {
            let holders = self.declared.holders.clone();
            let holder = self.random.pick(&holders);
            let element = match holder.shape {
                Shape::Array(length) => format!("{}[{}]", holder.name, self.random.below(length)),
                Shape::One | Shape::PerCpu => holder.name.clone(),
            };
            let mut scope = Scope { pure: true, ..Scope::default() };
            self.fuel = self.size;
            let count = self.random.below(2);
            let body = self.statements(&mut scope, count);
            let limit = if self.random.percent(95) { "1000" } else { "3" };
            let also = match self.random.percent(40) {
                true => frag![" || ", self.condition(&scope, 1)],
                false => "".into(),
            };
            let answer = number(&["1"], frag![format!("|{element}| <= {limit}"), also]);
            file.members.push(member(frag![
                format!("invariant {} {{\n", holder.name),
                body,
                "    return ",
                answer,
                ";\n}\n"
            ]));
        }
    }
}
