//! Gives a scheduler its meaning: runs its IR, one handler at a time.
//!
//! Tests compare every other engine with this reference. It performs every check, whatever an
//! analysis said of it. A program is compiled once into a compact form ([`code`]) in which names
//! are slots; running it allocates nothing per handler.
//!
//! - [`compile`] makes the compact form, with [`layout`] deciding the slots;
//! - [`state`] holds variables, threads and [`containers`];
//! - [`execute`] runs handlers and statements, [`evaluate`] expressions;
//! - [`update`] says what a handler did to values that a cluster shares;
//! - [`trap`] holds what a failed check found, [`failure`] says it in words, [`snapshot`] shows the
//!   whole state.

mod code;
mod compile;
mod containers;
mod evaluate;
mod execute;
mod failure;
mod layout;
mod random;
mod snapshot;
mod state;
mod trap;
mod update;

use std::fmt;
use std::sync::Arc;

use attune_language::engine::event::{Event, Parameter};
use attune_language::ir::{
    self, AttributeId, ContainerId, Extent, GlobalId, Program, Storage, Type,
};
use attune_language::source::SourceMap;

use crate::scheduler::{
    Call, CpuSet, Decision, ImportId, MAX_CPUS, Place, Scheduler, ThreadId, Trap, Value,
};

use code::Code;
use compile::Extras;
use containers::NONE;
use layout::{Layout, raw};
use snapshot::typed;
use state::{Life, State};
use trap::Found;

pub use failure::Failure;
pub use snapshot::Snapshot;
pub use update::{Update, Updated};

/// How to run a scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// 1..=[`MAX_CPUS`].
    pub cpus: u32,
    /// The seed of `random`.
    pub seed: u64,
    /// Run the scheduler's invariants.
    pub debug: bool,
    /// Note how often statements and expressions are executed, for [`Interpreter::reached`].
    pub notes: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { cpus: 1, seed: 0, debug: false, notes: false }
    }
}

/// Why a scheduler cannot be interpreted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is a base for others.
    Partial,
    /// It holds text in the language of another engine.
    Verbatim(Place),
    /// Its arrays would exhaust memory.
    TooLarge,
    Cpus(u32),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Partial => f.write_str("a partial scheduler is only a base for others"),
            Refusal::Verbatim(place) => {
                write!(f, "{place}: the simulator cannot run verbatim text")
            }
            Refusal::TooLarge => f.write_str("the scheduler's arrays are too large"),
            Refusal::Cpus(cpus) => write!(f, "{cpus} is no number of CPUs (1 to {MAX_CPUS})"),
        }
    }
}

impl std::error::Error for Refusal {}

/// What was reached in all runs so far, and how often, with [`Options::notes`].
#[derive(Clone, Debug, Default)]
pub struct Reached<'p> {
    pub statements: Vec<(&'p ir::Statement, u64)>,
    pub exprs: Vec<(ir::ExprId, u64)>,
}

/// A scheduler, ready to run. A clone is another instance, in the same state.
#[derive(Clone)]
pub struct Interpreter {
    program: Arc<Program>,
    /// The place of each check.
    places: Vec<Place>,
    options: Options,
    layout: Layout,
    code: Arc<Code>,
    state: State,
    /// Tunables that were set from outside: global, value. They outlive a new start.
    tuned: Vec<(usize, i64)>,
    /// A prologue failed: the next call says so.
    pending: Option<Failure>,
    /// Threads whose prologue has not run yet, and what the application has written into their
    /// imports meanwhile.
    fresh: Vec<Fresh>,
}

#[derive(Clone)]
struct Fresh {
    thread: u32,
    imports: Vec<(u32, i64)>,
}

impl Interpreter {
    /// `sources` are the files that `program` was made from.
    pub fn new(
        program: Arc<Program>,
        sources: &SourceMap,
        options: Options,
    ) -> Result<Interpreter, Refusal> {
        if program.partial {
            return Err(Refusal::Partial);
        }
        if let Some(&span) = program.verbatim.first() {
            return Err(Refusal::Verbatim(place(sources, span)));
        }
        let (layout, code) = prepare(&program, &options)?;
        let mut interpreter = Interpreter {
            places: program.checks.values().map(|check| place(sources, check.span)).collect(),
            state: State::new(&code, options.cpus, options.seed, false),
            program,
            options,
            layout,
            code: Arc::new(code),
            tuned: Vec::new(),
            pending: None,
            fresh: Vec::new(),
        };
        interpreter.restart();
        Ok(interpreter)
    }

    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Everything that the scheduler holds.
    pub fn snapshot(&self) -> Snapshot {
        snapshot::take(&self.program, &self.layout, &self.state)
    }

    /// Begins anew with everything that a scheduler of the same program held. Its threads may run
    /// everywhere, and its random numbers begin anew. False: it was another program's.
    pub fn restore(&mut self, snapshot: &Snapshot) -> bool {
        self.restart();
        snapshot::put_back(snapshot, &self.program, &self.layout, &mut self.state)
    }

    pub fn divisions_by_zero(&self) -> u64 {
        self.state.divisions_by_zero
    }

    /// Changes a `tunable`, from now on and in later runs. False if there is none of that name.
    pub fn set_tunable(&mut self, name: &str, value: Value) -> bool {
        let tunable =
            |global: &&ir::Global| global.storage == Storage::Tunable && global.name == name;
        let mut globals = self.program.globals.values();
        let Some(index) = globals.position(|global| tunable(&global)) else { return false };
        let Some((id, global)) = self.program.globals.iter().nth(index) else { return false };
        let bits = bits(global.ty, value);
        self.state.globals[self.layout.global(id) as usize] = bits;
        self.tuned.retain(|&(tuned, _)| tuned != index);
        self.tuned.push((index, bits));
        true
    }

    /// Runs a handler like [`Scheduler::call`], and says on failure which check it was.
    pub fn run(&mut self, call: &Call, decision: &mut Decision) -> Result<(), Failure> {
        if let Some(failure) = self.pending.take() {
            return Err(failure);
        }
        let Some(handler) = self.code.handlers.get(call.event as usize).and_then(Option::as_ref)
        else {
            return Ok(());
        };
        let thread = call.thread.map_or(NONE, |thread| thread.0);
        let named = !matches!(call.event.parameter(), Parameter::None);
        if call.cpu >= self.state.cpus || (named && self.state.life(thread) == Life::Absent) {
            return Err(misuse(call));
        }
        std::mem::swap(decision, &mut self.state.decision);
        self.state.now = call.now;
        self.state.cpu = call.cpu;
        let mut result = Ok(());
        if call.event == Event::NewThread && !self.fresh.is_empty() {
            result = begin_thread(&self.code, &mut self.state, &mut self.fresh, thread);
        }
        let result = result.and_then(|()| self.state.handle(&self.code, handler, thread));
        std::mem::swap(decision, &mut self.state.decision);
        result.map_err(|_| self.failure())
    }

    /// What handlers did to values that a cluster shares, in order, since the last time it was
    /// asked: assignments to the globals and attributes that [`Program::membership`] names.
    pub fn take_updates(&mut self) -> Vec<Update> {
        std::mem::take(&mut self.state.updates)
    }

    /// The threads of a container, first to last; only the first element of an array or of a
    /// `percpu` container counts.
    pub fn threads_in(&self, container: ContainerId) -> impl Iterator<Item = ThreadId> + '_ {
        self.state.containers.threads(self.layout.container(container)).map(ThreadId)
    }

    /// How many threads the container holds, in all its elements.
    pub fn size_of(&self, container: ContainerId) -> u32 {
        let base = self.layout.container(container);
        let slots = self.layout.slots(self.program.containers[container].extent);
        (base..base + slots).map(|slot| self.state.containers.size(slot)).sum()
    }

    /// What a scalar of the scheduler holds; CPU 0's if it is `percpu`.
    pub fn global(&self, global: GlobalId) -> Value {
        let bits = self.state.globals[self.layout.global(global) as usize];
        typed(self.program.globals[global].ty, bits)
    }

    /// Changes a scalar of the scheduler between handlers, whatever its storage: another node's
    /// word for it. A constant or an element of an array cannot be meant.
    pub fn set_global(&mut self, global: GlobalId, value: Value) {
        let bits = bits(self.program.globals[global].ty, value);
        self.state.globals[self.layout.global(global) as usize] = bits;
    }

    /// Changes an attribute between handlers as an assignment in a handler would: a thread that is
    /// sorted by it is inserted anew, unless the value is the same.
    pub fn revise_attribute(&mut self, thread: ThreadId, attribute: AttributeId, value: Value) {
        let (number, bits) =
            (raw(attribute) as u32, bits(self.program.attributes[attribute].ty, value));
        if self.state.life(thread.0) != Life::Absent
            && self.state.attribute(thread.0, number) != bits
        {
            self.state.assign_attribute(thread.0, number, bits);
            self.state.changed.clear();
        }
    }

    /// What an attribute of a thread holds; none if there is no such thread.
    pub fn attribute(&self, thread: ThreadId, attribute: AttributeId) -> Option<Value> {
        let ty = self.program.attributes[attribute].ty;
        (self.state.life(thread.0) != Life::Absent)
            .then(|| typed(ty, self.state.attribute(thread.0, raw(attribute) as u32)))
    }

    /// What was reached so far; nothing unless [`Options::notes`] was given.
    pub fn reached(&self) -> Reached<'_> {
        let statements = compile::statements(&self.program);
        let exprs = self.program.exprs.iter().map(|(id, _)| id);
        Reached {
            statements: statements
                .into_iter()
                .zip(self.state.noted_statements.iter().copied())
                .filter(|(_, times)| *times > 0)
                .collect(),
            exprs: exprs
                .zip(self.state.noted_exprs.iter().copied())
                .filter(|(_, times)| *times > 0)
                .collect(),
        }
    }

    fn restart(&mut self) {
        let noted = (
            std::mem::take(&mut self.state.noted_statements),
            std::mem::take(&mut self.state.noted_exprs),
        );
        let watching = !self.code.invariants.is_empty();
        self.state = State::new(&self.code, self.options.cpus, self.options.seed, watching);
        (self.state.noted_statements, self.state.noted_exprs) = noted;
        if self.options.notes {
            self.state.noted_statements.resize(compile::statements(&self.program).len(), 0);
            self.state.noted_exprs.resize(self.program.exprs.len(), 0);
        }
        self.fresh.clear();
        self.pending = None;
        if self.state.prologue(&self.code, &self.code.prologue, NONE).is_err() {
            self.pending = Some(self.failure());
        }
        for &(index, bits) in &self.tuned {
            if let Some((id, _)) = self.program.globals.iter().nth(index) {
                self.state.globals[self.layout.global(id) as usize] = bits;
            }
        }
    }

    /// What the failed check found, in words.
    #[cold]
    fn failure(&mut self) -> Failure {
        let unknown = Found { check: None, what: trap::What::Endless };
        let found = self.state.found.take().unwrap_or(unknown);
        self.state.containers.close(0);
        self.state.changed.clear();
        Failure {
            check: found.check,
            place: found.check.and_then(|check| self.places.get(raw(check)).cloned()),
            message: failure::message(&self.program, &self.state, &found),
        }
    }

    /// What the application has written for a thread whose prologue has not run yet.
    fn early_imports(&mut self, thread: ThreadId) -> Option<&mut Vec<(u32, i64)>> {
        let fresh = self.fresh.iter_mut().find(|fresh| fresh.thread == thread.0)?;
        Some(&mut fresh.imports)
    }
}

/// The thread's prologue, then what the application has written into its imports.
fn begin_thread(
    code: &Code,
    state: &mut State,
    fresh: &mut Vec<Fresh>,
    thread: u32,
) -> Result<(), trap::Tripped> {
    let Some(position) = fresh.iter().position(|fresh| fresh.thread == thread) else {
        return Ok(());
    };
    let begun = fresh.swap_remove(position);
    state.prologue(code, &code.thread_prologue, thread)?;
    for (attribute, bits) in begun.imports {
        state.set_attribute(thread, attribute, bits);
    }
    Ok(())
}

fn prepare(program: &Program, options: &Options) -> Result<(Layout, Code), Refusal> {
    if !(1..=MAX_CPUS).contains(&options.cpus) {
        return Err(Refusal::Cpus(options.cpus));
    }
    let layout = Layout::new(program, options.cpus)?;
    let code = compile::compile(
        program,
        options.cpus,
        Extras { invariants: options.debug, notes: options.notes },
    )?;
    Ok((layout, code))
}

fn place(sources: &SourceMap, span: attune_language::source::Span) -> Place {
    let location = sources.location(span);
    Place {
        file: sources.name(span.source).to_string(),
        line: location.line,
        column: location.column,
    }
}

fn misuse(call: &Call) -> Failure {
    let message = match call.thread {
        Some(thread) => {
            format!("{} was called for thread {thread} on CPU {}", call.event, call.cpu)
        }
        None => format!("{} was called without a thread on CPU {}", call.event, call.cpu),
    };
    Failure {
        check: None,
        place: None,
        message: format!("{message}, which the engine has not announced"),
    }
}

/// A value from outside as the bits of a variable of that type.
fn bits(ty: Type, value: Value) -> i64 {
    match (ty, value) {
        (Type::Float, Value::Float(value)) => value.to_bits() as i64,
        (Type::Float, Value::Int(value)) => (value as f64).to_bits() as i64,
        (Type::Int | Type::Time, Value::Int(value)) => value,
        // `as` truncates, saturates, and makes NaN 0.
        (Type::Int | Type::Time, Value::Float(value)) => value as i64,
    }
}

impl Scheduler for Interpreter {
    fn name(&self) -> &str {
        &self.program.name
    }

    fn start(&mut self, cpus: u32, seed: u64) {
        let options = Options { cpus: cpus.clamp(1, MAX_CPUS), seed, ..self.options };
        if options.cpus != self.options.cpus {
            match prepare(&self.program, &options) {
                Ok((layout, code)) => {
                    self.layout = layout;
                    self.code = Arc::new(code);
                }
                Err(refusal) => {
                    self.pending =
                        Some(Failure { check: None, place: None, message: refusal.to_string() });
                    return;
                }
            }
        }
        self.options = options;
        self.restart();
    }

    fn handles(&self, event: Event) -> bool {
        self.program.handler(event).is_some()
    }

    fn thread_created(&mut self, thread: ThreadId, affinity: &CpuSet) {
        self.state.create(thread.0, &self.code.attributes, affinity);
        self.fresh.retain(|fresh| fresh.thread != thread.0);
        if !self.code.thread_prologue.body.is_empty() {
            self.fresh.push(Fresh { thread: thread.0, imports: Vec::new() });
        }
    }

    fn set_affinity(&mut self, thread: ThreadId, affinity: &CpuSet) {
        self.state.set_affinity(thread.0, affinity);
    }

    fn thread_removed(&mut self, thread: ThreadId) {
        self.fresh.retain(|fresh| fresh.thread != thread.0);
        self.state.discard(thread.0);
        self.state.changed.clear();
    }

    fn thread_leaves(&mut self, thread: ThreadId) -> Vec<i64> {
        let attributes = self.state.attributes_of(thread.0).to_vec();
        self.thread_removed(thread);
        attributes
    }

    fn thread_arrives(&mut self, thread: ThreadId, affinity: &CpuSet, attributes: &[i64]) {
        self.state.create(thread.0, attributes, affinity);
    }

    fn call(&mut self, call: &Call, decision: &mut Decision) -> Result<(), Trap> {
        self.run(call, decision).map_err(Trap::from)
    }

    fn thread_import(&self, name: &str) -> Option<ImportId> {
        let import = |attribute: &ir::Attribute| attribute.import && attribute.name == name;
        Some(ImportId(self.program.attributes.values().position(import)? as u32))
    }

    fn global_import(&self, name: &str) -> Option<ImportId> {
        let import = |global: &ir::Global| {
            global.storage == Storage::Import && global.extent == Extent::One && global.name == name
        };
        Some(ImportId(self.program.globals.values().position(import)? as u32))
    }

    fn set_thread_import(&mut self, thread: ThreadId, import: ImportId, value: Value) {
        let Some(attribute) = self.program.attributes.values().nth(import.0 as usize) else {
            return;
        };
        let bits = bits(attribute.ty, value);
        if let Some(early) = self.early_imports(thread) {
            early.push((import.0, bits));
        } else if self.state.life(thread.0) != Life::Absent {
            self.state.set_attribute(thread.0, import.0, bits);
        }
    }

    fn set_global_import(&mut self, import: ImportId, value: Value) {
        if let Some((id, global)) = self.program.globals.iter().nth(import.0 as usize) {
            self.state.globals[self.layout.global(id) as usize] = bits(global.ty, value);
        }
    }

    fn get_thread_import(&self, thread: ThreadId, import: ImportId) -> Value {
        let Some(attribute) = self.program.attributes.values().nth(import.0 as usize) else {
            return Value::Int(0);
        };
        if self.state.life(thread.0) == Life::Absent {
            return typed(attribute.ty, self.code.attributes[import.0 as usize]);
        }
        let early = self.fresh.iter().find(|fresh| fresh.thread == thread.0);
        let early =
            early.and_then(|fresh| fresh.imports.iter().rfind(|(written, _)| *written == import.0));
        let bits =
            early.map_or_else(|| self.state.attribute(thread.0, import.0), |&(_, bits)| bits);
        typed(attribute.ty, bits)
    }

    fn get_global_import(&self, import: ImportId) -> Value {
        match self.program.globals.iter().nth(import.0 as usize) {
            Some((id, global)) => {
                typed(global.ty, self.state.globals[self.layout.global(id) as usize])
            }
            None => Value::Int(0),
        }
    }

    fn where_is(&self, thread: ThreadId) -> Option<String> {
        if self.state.life(thread.0) == Life::Absent {
            return None;
        }
        match self.state.containers.home(thread.0) {
            NONE => None,
            home => Some(failure::container_name(&self.program, &self.state, home)),
        }
    }
}
