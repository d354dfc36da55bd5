//! Witnesses in words: why a check could not be proved, and why one always fails.

use super::facts::Cause;
use super::verdict::Witness;
use crate::engine::event::Event;
use crate::engine::protocol::{Phase, Protocol};
use crate::engine::report::Explanation;
use crate::ir::*;

impl Witness {
    /// Why the check may fail: the fact that is missing, and what took it away.
    pub fn explain(&self, program: &Program, protocol: &Protocol, check: CheckId) -> Explanation {
        let check = &program.checks[check];
        let doubt = match check.kind {
            CheckKind::NamedTransfer | CheckKind::NamedUse => {
                return Explanation {
                    text: "the thread may have been destroyed before".into(),
                    place: None,
                };
            }
            CheckKind::Stored => {
                let text =
                    "there is a path on which the new thread is put into no container".into();
                return Explanation { text, place: None };
            }
            CheckKind::IndexInRange => {
                let text = "nothing shows that the index is in range on every path".into();
                return Explanation { text, place: None };
            }
            CheckKind::DestinationEmpty => "may still hold a thread",
            CheckKind::LocalEmptied => "may still hold a thread when the handler ends",
            _ => "may be empty",
        };
        let name = self.name(program);
        let place = match self.cause {
            Cause::At(cause) => Some(program.checks[cause].span),
            Cause::Entry | Cause::Several => None,
        };
        let why = match self.cause {
            Cause::At(_) if doubt == "may be empty" => {
                ": this may have taken its last thread".to_string()
            }
            Cause::At(_) => ": this may have filled it".to_string(),
            Cause::Several => ": what it holds differs between the ways that lead here".to_string(),
            Cause::Entry if self.filtered && check.kind == CheckKind::DestinationEmpty => {
                ": other CPUs may have filled it, and `schedule` reads only threads that \
                 may run on its CPU"
                    .to_string()
            }
            Cause::Entry if self.filtered => {
                " of threads that may run on this CPU: what other handlers left in it does \
                 not tell, and no condition before asks"
                    .to_string()
            }
            Cause::Entry => format!(
                " already when {}, and no condition before asks",
                self.start(program, protocol)
            ),
        };
        Explanation { text: format!("{name} {doubt}{why}"), place }
    }

    /// Why the check always fails.
    pub fn contradiction(
        &self,
        program: &Program,
        protocol: &Protocol,
        kind: CheckKind,
    ) -> Explanation {
        let place = match self.cause {
            Cause::At(cause) => Some(program.checks[cause].span),
            Cause::Entry | Cause::Several => None,
        };
        let text = match (self.cause, kind) {
            (Cause::At(_), CheckKind::DestinationEmpty | CheckKind::LocalEmptied) => {
                "it is filled here".into()
            }
            (Cause::At(_), _) => "its last thread leaves here".into(),
            (Cause::Entry, CheckKind::DestinationEmpty) => {
                format!("it is full when {}", self.start(program, protocol))
            }
            (Cause::Entry, _) => format!("it is empty when {}", self.start(program, protocol)),
            (Cause::Several, _) => "on every way that leads here".into(),
        };
        Explanation { text, place }
    }

    /// Whether the check is about the size of a container.
    pub fn is_about_a_container(&self) -> bool {
        self.container.is_some()
    }

    /// The container, as a subject.
    pub fn name(&self, program: &Program) -> String {
        let Some(number) = self.container else { return "the container".into() };
        match program.containers.iter().nth(usize::from(number)) {
            Some((_, container)) if matches!(container.extent, Extent::Array(_)) => {
                format!("an element of `{}`", container.name)
            }
            Some((_, container)) => format!("`{}`", container.name),
            None => "the container".into(),
        }
    }

    /// "`schedule` starts because the CPU needs a thread".
    fn start(&self, program: &Program, protocol: &Protocol) -> String {
        let Some(event) = self.event else { return "the scheduler starts".into() };
        let name = program.handler_name(event);
        match protocol.occasions.get(self.occasion) {
            Some(occasion) if event != Event::Init => {
                let idle = occasion.phases == [Phase::Idle];
                let phase = if idle { " and the CPU is idle" } else { "" };
                format!("`{name}` is called because {}{phase}", occasion.what)
            }
            _ => format!("`{name}` is called"),
        }
    }
}
