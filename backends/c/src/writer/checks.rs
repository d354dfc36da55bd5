//! The run-time checks that were not proved: one static record each, and the sentence with which it
//! fails.
//!
//! A check is called by its place, `check_41_9`: line and column in the scheduler.

use std::collections::{HashMap, HashSet};

use attune_language::ir::{CheckId, CheckKind, ContainerKind, LOOP_BUDGET, ThreadExpr, ThreadKind};
use attune_language::source::Span;

use super::Writer;
use super::output::quoted;
use super::target::Failures;

#[derive(Default)]
pub struct Checks {
    /// In the order of their first use: C name, check, sentence.
    performed: Vec<(String, CheckId, String)>,
    named: HashMap<CheckId, String>,
    /// Places where the kernel may cut a loop short, numbered behind the checks: C name, place,
    /// sentence.
    cut: Vec<(String, Span, String)>,
    taken: HashSet<String>,
}

/// The longest piece of source text that a sentence quotes, in characters.
const QUOTED: usize = 60;

impl Writer<'_> {
    /// The address of a check's record, which says `what` when it fails.
    pub(super) fn check(&mut self, check: CheckId, what: impl FnOnce(&Self) -> String) -> String {
        let address = if self.target.failures == Failures::AreNoted { "" } else { "&" };
        if let Some(name) = self.checks.named.get(&check) {
            return format!("{address}{name}");
        }
        let location = self.sources.location(self.program.checks[check].span);
        let plain = format!("check_{}_{}{}", location.line, location.column, self.role.ending());
        let mut name = plain.clone();
        let mut number = 2;
        while !self.checks.taken.insert(name.clone()) {
            name = format!("{plain}_{number}");
            number += 1;
        }
        let what = what(self);
        self.checks.named.insert(check, name.clone());
        self.checks.performed.push((name.clone(), check, what));
        format!("{address}{name}")
    }

    /// A check of a thread: the source of a transfer, `dispatch`, an attribute.
    pub(super) fn thread_check(&mut self, check: CheckId, thread: &ThreadExpr) -> String {
        let kind = self.program.checks[check].kind;
        self.check(check, |writer| {
            let text = writer.quote(thread.span);
            // `*RQ` and `RQ` are both the first thread of RQ.
            let text = text.trim_start_matches(['*', ' ']);
            match kind {
                CheckKind::SourceFilled => format!("cannot take a thread from {text}: it is empty"),
                CheckKind::DispatchFilled => format!("cannot dispatch {text}: it is empty"),
                CheckKind::DestroyFilled => {
                    format!("cannot destroy the thread in {text}: it is empty")
                }
                CheckKind::NamedTransfer => format!("cannot move {text}: it was destroyed before"),
                CheckKind::NamedUse => format!("cannot use {text}: it was destroyed before"),
                _ if writer.is_threadref(thread) => format!("cannot use {text}: it is empty"),
                _ => format!("cannot use the first thread of {text}: there is none"),
            }
        })
    }

    fn is_threadref(&self, thread: &ThreadExpr) -> bool {
        match &thread.kind {
            ThreadKind::First(of) => {
                self.program.containers[of.container].kind == ContainerKind::Threadref
            }
            ThreadKind::Name(_) => false,
        }
    }

    pub(super) fn index_check(&mut self, check: CheckId) -> String {
        let span = self.program.checks[check].span;
        self.check(check, |writer| format!("the index in {} is out of range", writer.quote(span)))
    }

    pub(super) fn loop_check(&mut self, check: CheckId) -> String {
        let event = self.program.checks[check].event;
        self.check(check, |_| {
            let place = event.map_or("the initial values".to_string(), |event| event.to_string());
            format!("the loops of {place} took more than {LOOP_BUDGET} iterations in one call")
        })
    }

    /// The number under which a loop is noted that the kernel cut short.
    pub(super) fn cut(&mut self, span: Span, what: impl FnOnce(&Self) -> String) -> String {
        let location = self.sources.location(span);
        let plain =
            format!("attune_loop_{}_{}{}", location.line, location.column, self.role.ending());
        let mut name = plain.clone();
        let mut number = 2;
        while !self.checks.taken.insert(name.clone()) {
            name = format!("{plain}_{number}");
            number += 1;
        }
        let what = format!("{} went on for longer than the kernel allows, 250 ms", what(self));
        self.checks.cut.push((name.clone(), span, what));
        name
    }

    pub(super) fn check_records(&mut self) {
        let performed = std::mem::take(&mut self.checks.performed);
        if performed.is_empty() && self.checks.cut.is_empty() {
            return;
        }
        self.out.blank();
        if self.target.failures == Failures::AreNoted {
            self.check_numbers(&performed);
            self.checks.performed = performed;
            return;
        }
        self.out
            .line("/* Checks that were not proved: number, line, column, file, what was tried. */");
        for (name, check, what) in &performed {
            let span = self.program.checks[*check].span;
            let location = self.sources.location(span);
            self.out.line(format!(
                "static const struct attune_check {name} = {{ {}, {}, {}, {}, {} }};",
                check.into_raw().into_u32(),
                location.line,
                location.column,
                quoted(self.sources.name(span.source)),
                quoted(what)
            ));
        }
    }

    /// Generated code knows a check by its number; the description holds its place and sentence.
    fn check_numbers(&mut self, performed: &[(String, CheckId, String)]) {
        self.out.line(
            "/* Checks that were not proved and loops that may take too long, by their number. */",
        );
        self.out.open("enum {");
        for (name, check, _) in performed {
            let line = format!("{name} = {},", self.first_check + check.into_raw().into_u32());
            self.out.line(line);
        }
        for (name, number) in self.checks.cut.iter().map(|(name, ..)| name).zip(self.first_cut()..)
        {
            self.out.line(format!("{name} = {number},"));
        }
        self.out.close("};");
    }

    fn first_cut(&self) -> u32 {
        self.first_check + self.program.checks.len() as u32
    }

    /// Behind its last: where the numbers of another policy begin.
    pub(crate) fn next_check(&self) -> u32 {
        self.first_cut() + self.checks.cut.len() as u32
    }

    /// What may fail in the running scheduler: number, place, sentence.
    pub(crate) fn performed_checks(&self) -> impl Iterator<Item = (u32, Span, &str)> {
        let checks = self.checks.performed.iter().map(|(_, check, what)| {
            (
                self.first_check + check.into_raw().into_u32(),
                self.program.checks[*check].span,
                what.as_str(),
            )
        });
        let cut = self.checks.cut.iter().zip(self.first_cut()..);
        checks.chain(cut.map(|((_, span, what), number)| (number, *span, what.as_str())))
    }

    /// The source text of a span on one line, cut if it is long.
    pub(super) fn quote(&self, span: Span) -> String {
        let words: Vec<&str> = self.sources.slice(span).split_whitespace().collect();
        let text = words.join(" ");
        match text.char_indices().nth(QUOTED) {
            Some((cut, _)) => format!("{}..", &text[..cut]),
            None => text,
        }
    }
}
