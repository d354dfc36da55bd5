//! `attune check --engine embedded`: how many steps and how much stack each handler takes at most.

use std::fmt::Write;

use attune_backend_c::Policy;
use attune_embedded::stack::{Deepest, Inlining, Stack};
use attune_language::Checked;
use attune_language::analysis::steps::{self, WorstCase};
use attune_language::engine::Engine;
use attune_language::engine::event::Event;
use attune_language::ir::LOOP_BUDGET;
use attune_language::source::Span;
use serde_json::{Value, json};

/// The table of a scheduler that the embedded engine runs.
pub struct Table {
    threads: u32,
    handlers: Vec<WorstCase>,
    /// Err: why the stack is unknown.
    stack: Result<Bytes, String>,
}

/// What the compiler for the Cortex-M says.
struct Bytes {
    /// By handler, each compiled as a function of its own.
    handlers: Vec<(Event, u32)>,
    /// The call of the engine that takes the most of a thread's stack.
    call: Deepest,
}

/// Functions that the firmware or its C library defines.
const ELSEWHERE: [&str; 3] = ["memcpy", "memset", "__indirect_call"];

impl Table {
    /// None: the embedded engine does not run it.
    pub fn of(checked: &Checked, threads: u32) -> Option<Table> {
        let program = checked.program.as_ref()?;
        checked.engine(Engine::Embedded).accepted.then(|| Table {
            threads,
            handlers: steps::worst_cases(program, threads),
            stack: stack(checked),
        })
    }

    pub fn text(&self, checked: &Checked) -> String {
        let mut text =
            format!("    worst case of a call, with {} threads at most:\n", self.threads);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "      {:<18}{:>9}  {:>12}", "handler", "steps", "stack, bytes");
        let places = |spans: &[Span]| {
            let places = spans.iter().map(|&span| checked.sources.place(span).to_string());
            places.collect::<Vec<_>>().join(", ")
        };
        for each in &self.handlers {
            let steps = each.steps.map_or("no bound".to_string(), |steps| steps.to_string());
            // A handler that does nothing, or that this engine never calls, is not compiled.
            let without = if self.stack.is_ok() { "-" } else { "?" };
            let bytes = self.bytes(each.event).map_or(without.to_string(), |it| it.to_string());
            let _ = writeln!(text, "      {:<18}{steps:>9}  {bytes:>12}", each.event.name());
            if !each.unbounded.is_empty() {
                let _ = writeln!(
                    text,
                    "        no bound is seen for the loop at {}; {LOOP_BUDGET} turns end the call",
                    places(&each.unbounded)
                );
            }
            if !each.verbatim.is_empty() {
                let _ = writeln!(
                    text,
                    "        and what the verbatim text at {} takes",
                    places(&each.verbatim)
                );
            }
        }
        let _ = match &self.stack {
            Ok(bytes) => writeln!(
                text,
                "    stack: a thread's call of the engine takes at most {} bytes ({}), by \
                 arm-none-eabi-gcc -Os for a Cortex-M3",
                bytes.call.bytes,
                bytes.call.through.join(" > ")
            ),
            Err(why) => writeln!(text, "    stack: unknown: {why}"),
        };
        text
    }

    pub fn json(&self, checked: &Checked) -> Value {
        let places = |spans: &[Span]| {
            let places = spans.iter().map(|&span| checked.sources.place(span).to_string());
            places.collect::<Vec<_>>()
        };
        let handlers = self.handlers.iter().map(|each| {
            json!({
                "handler": each.event.name(),
                "steps": each.steps,
                "loops_without_bound": places(&each.unbounded),
                "verbatim": places(&each.verbatim),
                "stack_bytes": self.bytes(each.event),
            })
        });
        json!({
            "threads": self.threads,
            "handlers": handlers.collect::<Vec<_>>(),
            "call_stack_bytes": self.stack.as_ref().ok().map(|bytes| bytes.call.bytes),
            "stack_unknown": self.stack.as_ref().err(),
        })
    }

    fn bytes(&self, event: Event) -> Option<u32> {
        let bytes = self.stack.as_ref().ok()?;
        bytes.handlers.iter().find(|(each, _)| *each == event).map(|(_, bytes)| *bytes)
    }
}

fn stack(checked: &Checked) -> Result<Bytes, String> {
    let program = checked.program.as_ref().ok_or("it has errors")?;
    if !program.verbatim.is_empty() {
        return Err("verbatim text needs the firmware's own declarations".to_string());
    }
    let verdicts = &checked.engine(Engine::Embedded).verdicts;
    let policy = Policy { program, verdicts, sources: &checked.sources };
    let files = attune_embedded::source(policy, false).map_err(|error| error.to_string())?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let of = |inlining| {
        Stack::of(&files, &[], inlining, folder.path()).map_err(|error| error.to_string())
    };
    let (alone, real) = (of(Inlining::None)?, of(Inlining::AsInFirmware)?);
    let handlers = program.handlers.iter().filter_map(|handler| {
        // Queries that the engine never asks are not compiled.
        let found = alone.deepest(&format!("on_{}", handler.event.name()), &ELSEWHERE).ok()?;
        Some((handler.event, found.bytes))
    });
    let handlers = handlers.collect();
    let mut call = Deepest::default();
    for function in real.public() {
        let this = real.deepest(function, &ELSEWHERE).map_err(|error| error.to_string())?;
        if this.bytes > call.bytes {
            call = this;
        }
    }
    Ok(Bytes { handlers, call })
}
