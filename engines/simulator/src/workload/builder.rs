//! Puts a workload together: the part that the readers of its forms share. It turns names into
//! numbers, and finds names that a workload uses without ever supplying them.

use std::collections::HashMap;
use std::ops::Range;

use super::expression::{self, Expression, Name};
use super::program::{Address, Operation, Target, Variable};
use super::*;
use crate::diagnostic::closest;

pub(super) struct Builder {
    pub source: Source,
    pub operations: Vec<Operation>,
    pub places: Vec<Range<usize>>,
    pub templates: Vec<Template>,
    pub groups: Vec<String>,
    pub globals: Vec<Global>,
    pub variables: Vec<Named>,
    pub semaphores: Vec<Declared<u64>>,
    pub channels: Vec<Declared<Option<usize>>>,
    pub locks: Vec<String>,
    pub conditions: Vec<Declared<()>>,
    pub barriers: Vec<Barrier>,
    /// Channels in which nodes of a cluster meet.
    pub shared_channels: Vec<String>,
    pub cluster_variables: Vec<String>,
    /// It is the workload of a node, or of the world around a cluster.
    pub in_cluster: bool,
    /// Names that templates will have, known before their programs are read.
    pub template_names: HashMap<String, u16>,
    hidden: u32,
    /// The first loop without an end in the program being read.
    pub endless: Option<Range<usize>>,
    /// The program being read may end inside a loop.
    pub may_end: bool,
}

/// A loop that is being emitted.
#[must_use]
pub(super) struct Loop {
    start: Address,
    /// The jump that leaves it, if it ever ends.
    leave: Option<Address>,
    /// The thread's variable that counts the rounds after the present one, if it ever ends.
    pub left: Option<u16>,
}

/// A variable of threads: where it is first read, whether it is ever set.
pub(super) struct Named {
    pub name: String,
    pub set: bool,
    pub read: Option<Range<usize>>,
}

/// A synchronisation object, and whether the workload takes from it and gives to it.
pub(super) struct Declared<T> {
    pub name: String,
    pub value: T,
    pub taken: Option<Range<usize>>,
    pub given: bool,
}

impl Builder {
    pub fn new(source: Source) -> Builder {
        Builder {
            source,
            operations: Vec::new(),
            places: Vec::new(),
            templates: Vec::new(),
            groups: Vec::new(),
            globals: Vec::new(),
            variables: Vec::new(),
            semaphores: Vec::new(),
            channels: Vec::new(),
            locks: Vec::new(),
            conditions: Vec::new(),
            barriers: Vec::new(),
            shared_channels: Vec::new(),
            cluster_variables: Vec::new(),
            in_cluster: false,
            template_names: HashMap::new(),
            hidden: 0,
            endless: None,
            may_end: false,
        }
    }

    pub fn error(&self, span: &Range<usize>, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(message).at(self.source.locate(span))
    }

    pub fn emit(&mut self, operation: Operation, span: &Range<usize>) -> Address {
        self.operations.push(operation);
        self.places.push(span.clone());
        self.here() - 1
    }

    /// The address of the next operation.
    pub fn here(&self) -> Address {
        self.operations.len() as Address
    }

    /// Makes a jump that was emitted before its aim was known go to the next operation.
    pub fn land(&mut self, jump: Address) {
        let here = self.here();
        match &mut self.operations[jump as usize] {
            Operation::Jump(aim) | Operation::JumpUnless(_, aim) => *aim = here,
            other => debug_assert!(false, "{other:?} is no jump"),
        }
    }

    /// Begins a loop around what is emitted until [`Builder::close_loop`]; None repeats for ever.
    pub fn open_loop(&mut self, times: Option<Expression>, span: &Range<usize>) -> Loop {
        use expression::{Binary, Step};
        let Some(times) = times else {
            self.endless.get_or_insert(span.clone());
            return Loop { start: self.here(), leave: None, left: None };
        };
        let number = self.hidden("repeat");
        let count = || Step::Load(Name::Thread(number));
        self.emit(Operation::Set(Variable::Thread(number), times), span);
        let start = self.here();
        let left =
            Expression::Steps(Box::new([count(), Step::Push(0.5), Step::Binary(Binary::Greater)]));
        let leave = self.emit(Operation::JumpUnless(left, 0), span);
        let less =
            Expression::Steps(Box::new([count(), Step::Push(1.0), Step::Binary(Binary::Subtract)]));
        self.emit(Operation::Set(Variable::Thread(number), less), span);
        Loop { start, leave: Some(leave), left: Some(number) }
    }

    pub fn close_loop(&mut self, opened: Loop, span: &Range<usize>) {
        self.emit(Operation::Jump(opened.start), span);
        if let Some(leave) = opened.leave {
            self.land(leave);
        }
    }

    /// A variable of every thread that no expression can name.
    pub fn hidden(&mut self, purpose: &str) -> u16 {
        self.hidden += 1;
        let name = format!("#{purpose}{}", self.hidden);
        self.variables.push(Named { name, set: true, read: None });
        (self.variables.len() - 1) as u16
    }

    /// The variable that is to be set: a global one if declared so, else the thread's.
    pub fn variable(&mut self, name: &str, span: &Range<usize>) -> Result<Variable, Diagnostic> {
        let is_word = name.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !is_word || BUILT_IN.contains(&name) {
            let why = if is_word { "is a built-in name" } else { "is no name for a variable" };
            return Err(self
                .error(span, format!("`{name}` {why}"))
                .hint("a name is letters, digits and _, and none of now, release, sent, index"));
        }
        if let Some(number) = self.globals.iter().position(|global| global.name == name) {
            return Ok(Variable::Global(number as u16));
        }
        let number = thread_variable(&mut self.variables, name);
        self.variables[number as usize].set = true;
        Ok(Variable::Thread(number))
    }

    pub fn expression(
        &mut self,
        text: &str,
        span: &Range<usize>,
    ) -> Result<Expression, Diagnostic> {
        let Builder { variables, globals, channels, .. } = self;
        let mut resolve = |name: &str| {
            Ok(match name {
                "now" => Name::Now,
                "release" => Name::Release,
                "sent" => Name::Sent,
                "index" => Name::Index,
                _ => match globals.iter().position(|global| global.name == name) {
                    Some(number) => Name::Global(number as u16),
                    None => {
                        let number = thread_variable(variables, name);
                        variables[number as usize].read.get_or_insert(span.clone());
                        Name::Thread(number)
                    }
                },
            })
        };
        let mut channel = |name: &str| declared(channels, name);
        expression::parse(text, &mut resolve, &mut channel).map_err(|error| {
            // Inside a plain quoted string the place is exact.
            let quoted =
                self.source.text.get(span.start + 1..span.end.saturating_sub(1)) == Some(text);
            let place = if quoted {
                span.start + 1 + error.span.start..span.start + 1 + error.span.end
            } else {
                span.clone()
            };
            let mut diagnostic = self.error(&place, error.message);
            diagnostic.hint = error.hint;
            diagnostic
        })
    }

    /// An expression that is a duration or an instant: constants must have a unit and be no less
    /// than 0.
    pub fn time(&mut self, text: &str, span: &Range<usize>) -> Result<Expression, Diagnostic> {
        let expression = self.expression(text, span)?;
        if let Some(value) = expression.constant() {
            if value < 0.0 {
                return Err(self.error(span, "a time cannot be negative"));
            }
            if value != 0.0 && text.trim().parse::<f64>().is_ok() {
                return Err(self
                    .error(span, "a time needs a unit")
                    .hint(format!("write \"{0}ms\" or \"{0}us\"", text.trim())));
            }
        }
        Ok(expression)
    }

    pub fn semaphore(&mut self, name: &str) -> u16 {
        declared(&mut self.semaphores, name)
    }

    pub fn channel(&mut self, name: &str) -> u16 {
        declared(&mut self.channels, name)
    }

    pub fn cluster_variable(&mut self, name: &str) -> u16 {
        interned(&mut self.cluster_variables, name)
    }

    pub fn condition(&mut self, name: &str) -> u16 {
        declared(&mut self.conditions, name)
    }

    pub fn lock(&mut self, name: &str) -> u16 {
        interned(&mut self.locks, name)
    }

    pub fn group(&mut self, name: &str) -> u16 {
        interned(&mut self.groups, name)
    }

    pub fn template(&self, name: &str, span: &Range<usize>) -> Result<u16, Diagnostic> {
        self.template_names.get(name).copied().ok_or_else(|| {
            let mut error = self.error(span, format!("there is no thread `{name}`"));
            let mut names: Vec<&str> = self.template_names.keys().map(String::as_str).collect();
            names.sort_unstable();
            error.hint = Some(match closest(name, names.iter().copied()) {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!("the threads are {}", names.join(", ")),
            });
            error
        })
    }

    pub fn target(
        &self,
        name: &str,
        index: Expression,
        span: &Range<usize>,
    ) -> Result<Target, Diagnostic> {
        Ok(Target { template: self.template(name, span)?, index })
    }

    /// What is taken but never given, read but never set.
    fn check_names(&self) -> Result<(), Diagnostic> {
        for variable in &self.variables {
            if let (false, Some(span)) = (variable.set, &variable.read) {
                let known = self
                    .variables
                    .iter()
                    .filter(|other| other.set)
                    .map(|other| other.name.as_str());
                let known = known
                    .chain(self.globals.iter().map(|global| global.name.as_str()))
                    .chain(BUILT_IN);
                let mut error =
                    self.error(span, format!("`{}` is never given a value", variable.name));
                error.hint = Some(match closest(&variable.name, known) {
                    Some(close) => format!("did you mean `{close}`?"),
                    None => "set it with `set`, in `imports`, or declare it in [globals]".into(),
                });
                return Err(error);
            }
        }
        let semaphores = self.semaphores.iter().filter(|s| s.value == 0);
        unanswered(semaphores, "semaphore", "signals")
            .or_else(|| {
                let own = |channel: &&Declared<_>| !self.shared_channels.contains(&channel.name);
                unanswered(self.channels.iter().filter(own), "channel", "sends to")
            })
            .or_else(|| unanswered(self.conditions.iter(), "condition", "notifies"))
            .map_or(Ok(()), |(span, message, hint)| Err(self.error(&span, message).hint(hint)))
    }

    pub fn finish(self, settings: Settings) -> Result<Workload, Diagnostic> {
        self.check_names()?;
        let names = [
            self.variables.len(),
            self.globals.len(),
            self.templates.len(),
            self.groups.len(),
            self.semaphores.len(),
            self.channels.len(),
            self.locks.len(),
            self.conditions.len(),
            self.barriers.len(),
            self.cluster_variables.len(),
        ];
        if names.iter().any(|&count| count > usize::from(u16::MAX))
            || self.operations.len() > u32::MAX as usize
        {
            return Err(Diagnostic::new(format!(
                "{}: the workload has too many names",
                self.source.name
            ))
            .hint(format!("of each kind there may be {}", u16::MAX)));
        }
        let Settings {
            name,
            duration,
            cpus,
            cpus_per_cache,
            lock,
            context_switch,
            migration,
            max_threads,
            notes,
            mut changes,
        } = settings;
        changes.sort_by_key(|change| change.at);
        Ok(Workload {
            name,
            duration,
            cpus,
            cpus_per_cache,
            lock,
            context_switch,
            migration,
            max_threads,
            notes,
            changes,
            source: self.source,
            groups: self.groups,
            templates: self.templates,
            operations: self.operations,
            places: self.places,
            variables: self
                .variables
                .into_iter()
                .map(|variable| ThreadVariable {
                    only_set: variable.read.is_none() && !variable.name.starts_with('#'),
                    name: variable.name,
                })
                .collect(),
            globals: self.globals,
            semaphores: self
                .semaphores
                .into_iter()
                .map(|s| Semaphore { name: s.name, initial: s.value })
                .collect(),
            channels: self
                .channels
                .into_iter()
                .map(|c| Channel {
                    shared: self.shared_channels.contains(&c.name),
                    name: c.name,
                    capacity: c.value,
                })
                .collect(),
            locks: self.locks,
            conditions: self.conditions.into_iter().map(|condition| condition.name).collect(),
            barriers: self.barriers,
            cluster_variables: self.cluster_variables,
        })
    }
}

/// What a workload says beside its threads.
pub(super) struct Settings {
    pub name: String,
    pub duration: Option<Time>,
    pub cpus: Option<u32>,
    pub cpus_per_cache: Option<u32>,
    pub lock: LockCosts,
    pub context_switch: Time,
    pub migration: Time,
    pub max_threads: u32,
    pub notes: Vec<Diagnostic>,
    pub changes: Vec<Change>,
}

/// Names that every expression knows.
pub(super) const BUILT_IN: [&str; 4] = ["now", "release", "sent", "index"];

fn thread_variable(variables: &mut Vec<Named>, name: &str) -> u16 {
    let number = variables.iter().position(|variable| variable.name == name).unwrap_or_else(|| {
        variables.push(Named { name: name.to_string(), set: false, read: None });
        variables.len() - 1
    });
    number as u16
}

fn interned(names: &mut Vec<String>, name: &str) -> u16 {
    let number = names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_string());
        names.len() - 1
    });
    number as u16
}

fn declared<T: Default>(list: &mut Vec<Declared<T>>, name: &str) -> u16 {
    let number = list.iter().position(|known| known.name == name).unwrap_or_else(|| {
        list.push(Declared {
            name: name.to_string(),
            value: T::default(),
            taken: None,
            given: false,
        });
        list.len() - 1
    });
    number as u16
}

fn unanswered<'a, T: 'a>(
    mut list: impl Iterator<Item = &'a Declared<T>>,
    kind: &str,
    verb: &str,
) -> Option<(Range<usize>, String, String)> {
    let lonely = list.find(|declared| declared.taken.is_some() && !declared.given)?;
    let span = lonely.taken.clone()?;
    Some((
        span,
        format!("nobody ever {verb} the {kind} `{}`, so this would wait for ever", lonely.name),
        "is the name spelt the same on both sides?".to_string(),
    ))
}
