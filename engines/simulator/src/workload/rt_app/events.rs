//! Turns rt-app's events into operations.

use std::ops::Range;

use super::super::Global;
use super::super::expression::{Binary, Expression, Name, Step};
use super::super::json::{Entry, Value};
use super::super::program::{Operation, Variable};
use super::{MICROSECOND, PROPERTIES, Reader};
use crate::diagnostic::Diagnostic;

/// The events, longest names first: a key is the event that it begins with (`run0`, `run1`).
const EVENTS: [&str; 17] = [
    "barrier", "suspend", "runtime", "unlock", "signal", "resume", "sleep", "timer", "broad",
    "yield", "iorun", "lock", "wait", "sync", "fork", "run", "mem",
];

impl Reader {
    /// The events of a phase, in the order of the text.
    pub(super) fn events(
        &mut self,
        task: &str,
        entries: &[Entry],
        initial: &mut Vec<(Variable, Expression)>,
    ) -> Result<(), Diagnostic> {
        self.held.clear();
        for Entry { key, key_span, value } in entries {
            if PROPERTIES.contains(&key.as_str()) {
                if matches!(
                    key.as_str(),
                    "util_min"
                        | "util_max"
                        | "membind_nodes"
                        | "nodes_membind"
                        | "taskgroup"
                        | "custom-slice"
                ) {
                    self.note(
                        key_span,
                        format!("`{key}` is ignored: the machine has nothing like it"),
                    );
                }
                continue;
            }
            match event_of(key) {
                Some(event) => self.event(event, task, value, key_span, initial)?,
                None => {
                    self.note(key_span, format!("`{key}` is no event of rt-app, and is ignored"))
                }
            }
        }
        Ok(())
    }

    fn event(
        &mut self,
        event: &str,
        task: &str,
        value: &Value,
        span: &Range<usize>,
        initial: &mut Vec<(Variable, Expression)>,
    ) -> Result<(), Diagnostic> {
        let operation = match event {
            "run" | "runtime" => {
                Operation::Compute(Expression::Constant(self.count(value)? * MICROSECOND))
            }
            "sleep" => Operation::Sleep(Expression::Constant(self.count(value)? * MICROSECOND)),
            "timer" => return self.timer(value, span, initial),
            "lock" => {
                let lock = self.lock(value)?;
                self.held.push(lock);
                Operation::Lock(lock)
            }
            "unlock" => {
                let lock = self.lock(value)?;
                self.held.retain(|held| *held != lock);
                Operation::Unlock(lock)
            }
            "wait" => return self.wait(value, span, false),
            "sync" => return self.wait(value, span, true),
            "signal" => Operation::Notify(self.condition(self.text(value)?.to_string())),
            "broad" => Operation::NotifyAll(self.condition(self.text(value)?.to_string())),
            "barrier" => Operation::Barrier(self.barrier(self.text(value)?.to_string())),
            "suspend" => {
                let name = self.text_or(value, task)?;
                // Nobody may resume it: in rt-app too it then waits for ever.
                Operation::Await {
                    condition: self.condition(format!("suspend {name}")),
                    lock: None,
                }
            }
            "resume" => {
                Operation::NotifyAll(self.condition(format!("suspend {}", self.text(value)?)))
            }
            "yield" => Operation::Yield,
            "fork" => {
                let template = self.builder.template(self.text(value)?, &value.span)?;
                Operation::Spawn {
                    template,
                    count: Expression::Constant(1.0),
                    arguments: Box::default(),
                }
            }
            // mem, iorun
            _ => {
                self.note(
                    span,
                    format!(
                        "`{event}` takes no time here: its cost depends on the machine it runs on"
                    ),
                );
                return Ok(());
            }
        };
        self.builder.emit(operation, span);
        Ok(())
    }

    /// Ends the job of this period, sleeps until the timer's next time, begins the next job.
    fn timer(
        &mut self,
        value: &Value,
        span: &Range<usize>,
        initial: &mut Vec<(Variable, Expression)>,
    ) -> Result<(), Diagnostic> {
        let (mut name, mut period, mut absolute) = (None, None, false);
        for Entry { key, value, .. } in self.object(value)? {
            match key.as_str() {
                "ref" => name = Some(self.text(value)?.to_string()),
                "period" => period = Some(self.count(value)? * MICROSECOND),
                "mode" => {
                    absolute = match self.text(value)? {
                        "absolute" => true,
                        "relative" => false,
                        _ => {
                            return Err(self
                                .builder
                                .error(&value.span, "the mode is \"relative\" or \"absolute\""));
                        }
                    }
                }
                _ => {
                    return Err(self.builder.error(&value.span, format!("a timer has no `{key}`")));
                }
            }
        }
        let (Some(name), Some(period)) = (name, period) else {
            return Err(self.builder.error(&value.span, "a timer needs \"ref\" and \"period\""));
        };
        let (variable, load) = self.timer_variable(name, initial);
        let sum = |a: Step, b: Step, operator: Binary| {
            Expression::Steps(Box::new([a, b, Step::Binary(operator)]))
        };
        self.builder.emit(Operation::JobEnd, span);
        if let Variable::Global(_) = variable {
            // A shared timer counts from its first use.
            let unset = sum(Step::Load(load), Step::Push(0.0), Binary::Less);
            let skip = self.builder.emit(Operation::JumpUnless(unset, 0), span);
            self.builder.emit(Operation::Set(variable, Expression::name(Name::Now)), span);
            self.builder.land(skip);
        }
        let next = sum(Step::Load(load), Step::Push(period), Binary::Add);
        self.builder.emit(Operation::Set(variable, next), span);
        if !absolute {
            let not_past = sum(Step::Load(load), Step::Load(Name::Now), Binary::Max);
            self.builder.emit(Operation::Set(variable, not_past), span);
        }
        self.builder.emit(Operation::SleepUntil(Expression::name(load)), span);
        let release = Some(Expression::name(load));
        let deadline = Some(sum(Step::Load(load), Step::Push(period), Binary::Add));
        self.builder.emit(Operation::JobBegin { release, deadline }, span);
        Ok(())
    }

    fn timer_variable(
        &mut self,
        name: String,
        initial: &mut Vec<(Variable, Expression)>,
    ) -> (Variable, Name) {
        let variable = match self.timers.get(&name) {
            Some(&variable) => variable,
            None => {
                let variable = if name.starts_with("unique") {
                    let variable = Variable::Thread(self.builder.hidden("timer"));
                    initial.push((variable, Expression::name(Name::Now)));
                    variable
                } else {
                    self.builder
                        .globals
                        .push(Global { name: format!("#timer {name}"), initial: -1.0 });
                    Variable::Global((self.builder.globals.len() - 1) as u16)
                };
                self.timers.insert(name, variable);
                variable
            }
        };
        match variable {
            Variable::Thread(number) => (variable, Name::Thread(number)),
            Variable::Global(number) => (variable, Name::Global(number)),
        }
    }

    /// `wait`, and `sync`, which signals first. rt-app wants the lock held; where it is not, it is
    /// taken around.
    fn wait(
        &mut self,
        value: &Value,
        span: &Range<usize>,
        signals: bool,
    ) -> Result<(), Diagnostic> {
        let (mut condition, mut lock) = (None, None);
        for Entry { key, value, .. } in self.object(value)? {
            match key.as_str() {
                "ref" => condition = Some(self.condition(self.text(value)?.to_string())),
                "mutex" => lock = Some(self.lock(value)?),
                _ => return Err(self.builder.error(&value.span, format!("this has no `{key}`"))),
            }
        }
        let (Some(condition), Some(lock)) = (condition, lock) else {
            return Err(self.builder.error(&value.span, "this needs \"ref\" and \"mutex\""));
        };
        let held = self.held.contains(&lock);
        if !held {
            self.builder.emit(Operation::Lock(lock), span);
        }
        if signals {
            self.builder.emit(Operation::Notify(condition), span);
        }
        self.builder.emit(Operation::Await { condition, lock: Some(lock) }, span);
        if !held {
            self.builder.emit(Operation::Unlock(lock), span);
        }
        Ok(())
    }
}

pub(super) fn event_of(key: &str) -> Option<&'static str> {
    EVENTS.into_iter().find(|event| key.starts_with(event))
}
