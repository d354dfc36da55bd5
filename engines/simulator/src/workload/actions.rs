//! Reads the actions in Attune's own form of workloads: `do = [{ compute = "1ms" }, "yield"]`.
//!
//! Every action is one entry of [`ACTIONS`]: its key, and the other keys that may stand beside it.

use std::ops::Range;

use ::toml::de::{DeTable, DeValue};

use super::builder::Builder;
use super::expression::Expression;
use super::program::{Operation, SharedChange, Target, Variable};
use super::toml_values::{Fields, Value, amount, assignments, cpu_set, repetitions, text, time};
use super::*;
use crate::diagnostic::closest;

const ACTIONS: [(&str, &[&str]); 29] = [
    ("compute", &[]),
    ("sleep", &[]),
    ("sleep_until", &[]),
    ("io", &[]),
    ("set", &[]),
    ("repeat", &["do"]),
    ("while", &["do"]),
    ("if", &["then", "else"]),
    ("job", &["release", "deadline"]),
    ("wait", &[]),
    ("signal", &["count"]),
    ("send", &["value"]),
    ("receive", &["into"]),
    ("call", &["value", "into"]),
    ("reply", &[]),
    ("forward", &[]),
    ("update", &["add", "to", "into"]),
    ("lock", &["do"]),
    ("unlock", &[]),
    ("await", &["lock"]),
    ("notify", &[]),
    ("notify_all", &[]),
    ("barrier", &[]),
    ("yield_to", &["index"]),
    ("suspend", &["index"]),
    ("resume", &["index"]),
    ("wake", &["index"]),
    ("kill", &["index"]),
    ("spawn", &["count", "set"]),
];
/// Kept apart for it has the same spelling as a thread's key.
const AFFINITY: &str = "cpus";
const WORDS: [&str; 5] = ["yield", "end", "park", "join", "suspend"];

pub(super) fn read(builder: &mut Builder, list: &Value) -> Result<(), Diagnostic> {
    Reader { builder, in_job: false }.list(list)
}

pub(super) fn read_in_job(builder: &mut Builder, list: &Value) -> Result<(), Diagnostic> {
    Reader { builder, in_job: true }.list(list)
}

struct Reader<'b> {
    builder: &'b mut Builder,
    /// Jobs do not nest.
    in_job: bool,
}

impl Reader<'_> {
    fn list(&mut self, list: &Value) -> Result<(), Diagnostic> {
        let DeValue::Array(actions) = list.get_ref() else {
            return Err(self
                .builder
                .error(&list.span(), "this should be a list of actions in brackets"));
        };
        actions.iter().try_for_each(|action| self.action(action))
    }

    fn action(&mut self, action: &Value) -> Result<(), Diagnostic> {
        let span = action.span();
        match action.get_ref() {
            DeValue::String(word) => self.word(word, &span),
            DeValue::Table(table) => {
                let (key, value, fields) = self.recognise(table, &span)?;
                self.keyed(key, value, &fields, &span)
            }
            _ => Err(self
                .builder
                .error(&span, "this is no action")
                .hint("an action is written { compute = \"1ms\" }, or as one word: \"yield\"")),
        }
    }

    fn word(&mut self, word: &str, span: &Range<usize>) -> Result<(), Diagnostic> {
        let operation = match word {
            "yield" => Operation::Yield,
            "end" => Operation::End,
            "park" => Operation::Park,
            "join" => Operation::Join,
            "suspend" => Operation::Suspend(None),
            _ => {
                let hint = match closest(word, WORDS) {
                    Some(close) => format!("did you mean \"{close}\"?"),
                    None => format!("the actions of one word are {}", WORDS.join(", ")),
                };
                return Err(self
                    .builder
                    .error(span, format!("there is no action \"{word}\""))
                    .hint(hint));
            }
        };
        if matches!(operation, Operation::End) {
            self.builder.may_end = true;
        }
        self.builder.emit(operation, span);
        Ok(())
    }

    /// Finds the key that says what the action is, and checks that the others belong to it.
    fn recognise<'a>(
        &self,
        table: &'a DeTable<'a>,
        span: &Range<usize>,
    ) -> Result<(&'static str, &'a Value<'a>, Fields<'a>), Diagnostic> {
        let known = || ACTIONS.iter().map(|(key, _)| *key).chain([AFFINITY]);
        let found: Vec<&'static str> = known().filter(|key| table.get(*key).is_some()).collect();
        // `await = "c", lock = "m"`: a key that is another's companion names no action of its own.
        let leading: Vec<&'static str> = found
            .iter()
            .copied()
            .filter(|key| {
                !found.iter().any(|other| other != key && companions(other).contains(key))
            })
            .collect();
        match leading.as_slice() {
            [] => {
                let mut error = self.builder.error(span, "this is no action");
                let first = table.iter().map(|(key, _)| key).min_by_key(|key| key.span().start);
                error.hint =
                    Some("the actions are ".to_string() + &known().collect::<Vec<_>>().join(", "));
                if let Some(key) = first {
                    error = Diagnostic {
                        hint: error.hint,
                        ..self
                            .builder
                            .error(&key.span(), format!("there is no action `{}`", key.get_ref()))
                    };
                    if let Some(close) = closest(key.get_ref(), known()) {
                        error.hint = Some(format!("did you mean `{close}`?"));
                    }
                }
                Err(error)
            }
            &[key] => {
                let mut allowed = vec![key];
                allowed.extend(companions(key));
                let fields =
                    Fields::new(self.builder, table, span.clone(), "the action", &allowed)?;
                Ok((key, fields.need(self.builder, key)?, fields))
            }
            [first, second, ..] => Err(self
                .builder
                .error(span, format!("`{first}` and `{second}` are two actions"))
                .hint("put each into braces of its own, in the order in which they happen")),
        }
    }

    fn keyed(
        &mut self,
        key: &str,
        value: &Value,
        fields: &Fields,
        span: &Range<usize>,
    ) -> Result<(), Diagnostic> {
        let operation = match key {
            "compute" => Operation::Compute(time(self.builder, value)?),
            "sleep" => Operation::Sleep(time(self.builder, value)?),
            "sleep_until" => Operation::SleepUntil(time(self.builder, value)?),
            "io" => Operation::Io(time(self.builder, value)?),
            "set" => Operation::SetAll(assignments(self.builder, value)?.into()),
            "repeat" => {
                let times = repetitions(self.builder, value)?;
                let opened = self.builder.open_loop(times, span);
                self.list(fields.need(self.builder, "do")?)?;
                self.builder.close_loop(opened, span);
                return Ok(());
            }
            "while" => return self.while_loop(value, fields, span),
            "if" => return self.branch(value, fields, span),
            "job" => return self.job(value, fields, span),
            "wait" => {
                let number = self.builder.semaphore(text(self.builder, value)?);
                self.builder.semaphores[number as usize].taken.get_or_insert(value.span());
                Operation::Wait(number)
            }
            "signal" => {
                let number = self.builder.semaphore(text(self.builder, value)?);
                self.builder.semaphores[number as usize].given = true;
                Operation::Signal(number, self.amount_or(fields, "count", 1.0)?)
            }
            "send" => Operation::Send {
                channel: self.giving_channel(value)?,
                value: self.amount_or(fields, "value", 0.0)?,
            },
            "forward" => Operation::Forward(self.giving_channel(value)?),
            "receive" => {
                let channel = self.builder.channel(text(self.builder, value)?);
                self.builder.channels[channel as usize].taken.get_or_insert(value.span());
                Operation::Receive { channel, into: self.receiving_variable(fields)? }
            }
            "call" => Operation::Call {
                channel: self.giving_channel(value)?,
                value: self.amount_or(fields, "value", 0.0)?,
                into: self.receiving_variable(fields)?,
            },
            "reply" => Operation::Reply(amount(self.builder, value)?),
            "update" => self.update(value, fields)?,
            "lock" => {
                let lock = self.builder.lock(text(self.builder, value)?);
                self.builder.emit(Operation::Lock(lock), span);
                let Some(body) = fields.get("do") else { return Ok(()) };
                self.list(body)?;
                Operation::Unlock(lock)
            }
            "unlock" => Operation::Unlock(self.builder.lock(text(self.builder, value)?)),
            "await" => {
                let condition = self.builder.condition(text(self.builder, value)?);
                self.builder.conditions[condition as usize].taken.get_or_insert(value.span());
                let lock = match fields.get("lock") {
                    Some(lock) => Some(self.builder.lock(text(self.builder, lock)?)),
                    None => None,
                };
                Operation::Await { condition, lock }
            }
            "notify" | "notify_all" => {
                let condition = self.builder.condition(text(self.builder, value)?);
                self.builder.conditions[condition as usize].given = true;
                if key == "notify" {
                    Operation::Notify(condition)
                } else {
                    Operation::NotifyAll(condition)
                }
            }
            "barrier" => Operation::Barrier(self.barrier(value)?),
            "yield_to" => Operation::YieldTo(self.target(value, fields)?),
            "suspend" => Operation::Suspend(Some(self.target(value, fields)?)),
            "resume" => Operation::Resume(self.target(value, fields)?),
            "wake" => Operation::Wake(self.target(value, fields)?),
            "kill" => Operation::Kill(self.target(value, fields)?),
            "spawn" => {
                let template = self.builder.template(text(self.builder, value)?, &value.span())?;
                let count = self.amount_or(fields, "count", 1.0)?;
                let arguments = match fields.get("set") {
                    Some(set) => assignments(self.builder, set)?.into(),
                    None => Box::default(),
                };
                Operation::Spawn { template, count, arguments }
            }
            _ => Operation::Affinity(Box::new(cpu_set(self.builder, value)?)),
        };
        self.builder.emit(operation, span);
        Ok(())
    }

    fn update(&mut self, value: &Value, fields: &Fields) -> Result<Operation, Diagnostic> {
        if !self.builder.in_cluster {
            return Err(self
                .builder
                .error(&value.span(), "`update` is about a variable that nodes of a cluster share")
                .hint("write the threads of a node under [[node.thread]]"));
        }
        let change = match (fields.get("add"), fields.get("to")) {
            (Some(by), None) => Some((SharedChange::Add, amount(self.builder, by)?)),
            (None, Some(to)) => Some((SharedChange::Set, amount(self.builder, to)?)),
            (None, None) => None,
            (Some(_), Some(to)) => {
                let error = self.builder.error(&to.span(), "`add` and `to` are two changes");
                return Err(error.hint("leave one of them out"));
            }
        };
        Ok(Operation::Update {
            variable: self.builder.cluster_variable(text(self.builder, value)?),
            change,
            into: self.receiving_variable(fields)?,
        })
    }

    fn while_loop(
        &mut self,
        value: &Value,
        fields: &Fields,
        span: &Range<usize>,
    ) -> Result<(), Diagnostic> {
        let condition = amount(self.builder, value)?;
        let body = fields.need(self.builder, "do")?;
        let start = self.builder.here();
        let leave = self.builder.emit(Operation::JumpUnless(condition, 0), span);
        self.list(body)?;
        self.builder.emit(Operation::Jump(start), span);
        self.builder.land(leave);
        Ok(())
    }

    fn branch(
        &mut self,
        value: &Value,
        fields: &Fields,
        span: &Range<usize>,
    ) -> Result<(), Diagnostic> {
        let condition = amount(self.builder, value)?;
        let skip = self.builder.emit(Operation::JumpUnless(condition, 0), span);
        self.list(fields.need(self.builder, "then")?)?;
        let Some(otherwise) = fields.get("else") else {
            self.builder.land(skip);
            return Ok(());
        };
        let leave = self.builder.emit(Operation::Jump(0), span);
        self.builder.land(skip);
        self.list(otherwise)?;
        self.builder.land(leave);
        Ok(())
    }

    fn job(
        &mut self,
        body: &Value,
        fields: &Fields,
        span: &Range<usize>,
    ) -> Result<(), Diagnostic> {
        if self.in_job {
            return Err(self
                .builder
                .error(span, "a job inside a job")
                .hint("end the outer one first"));
        }
        let release = self.optional_time(fields, "release")?;
        let deadline = self.optional_time(fields, "deadline")?;
        self.builder.emit(Operation::JobBegin { release, deadline }, span);
        self.in_job = true;
        self.list(body)?;
        self.in_job = false;
        self.builder.emit(Operation::JobEnd, span);
        Ok(())
    }

    fn optional_time(
        &mut self,
        fields: &Fields,
        key: &str,
    ) -> Result<Option<Expression>, Diagnostic> {
        fields.get(key).map(|value| time(self.builder, value)).transpose()
    }

    fn amount_or(
        &mut self,
        fields: &Fields,
        key: &str,
        otherwise: f64,
    ) -> Result<Expression, Diagnostic> {
        fields
            .get(key)
            .map_or(Ok(Expression::Constant(otherwise)), |value| amount(self.builder, value))
    }

    fn giving_channel(&mut self, value: &Value) -> Result<u16, Diagnostic> {
        let number = self.builder.channel(text(self.builder, value)?);
        self.builder.channels[number as usize].given = true;
        Ok(number)
    }

    fn receiving_variable(&mut self, fields: &Fields) -> Result<Option<Variable>, Diagnostic> {
        let Some(value) = fields.get("into") else { return Ok(None) };
        self.builder.variable(text(self.builder, value)?, &value.span()).map(Some)
    }

    fn target(&mut self, value: &Value, fields: &Fields) -> Result<Target, Diagnostic> {
        let index = self.amount_or(fields, "index", 0.0)?;
        self.builder.target(text(self.builder, value)?, index, &value.span())
    }

    fn barrier(&self, value: &Value) -> Result<u16, Diagnostic> {
        let name = text(self.builder, value)?;
        match self.builder.barriers.iter().position(|barrier| barrier.name == name) {
            Some(number) => Ok(number as u16),
            None => Err(self
                .builder
                .error(&value.span(), format!("the barrier `{name}` is not declared"))
                .hint(format!("say how many threads meet there: [barriers] {name} = 4"))),
        }
    }
}

fn companions(action: &str) -> &'static [&'static str] {
    ACTIONS.iter().find(|(key, _)| *key == action).map_or(&[], |(_, others)| others)
}
