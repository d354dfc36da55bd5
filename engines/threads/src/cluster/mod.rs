//! The node of a cluster that this process is: what its handlers read of others, and what becomes
//! of what they write.
//!
//! Before a handler runs, the scheduler's imports get what the node's copy says; after it, its
//! assignments and the values that others see go into the copy. Neither enters the kernel. The
//! engine lets the copy hear and speak where it looks at descriptors anyway.
//!
//! Invariant: a pointer here leads into the scheduler's state, which lives as long as the process.

mod number;
mod program;

use std::ffi::{CStr, c_int, c_void};
use std::sync::Arc;

use attune_abi::{self as abi, Container, Variable};
use attune_cluster_local::connection::Connection;
use attune_cluster_local::{packets, place};
use attune_language::ir::Value;
use attune_language::ir::{GlobalId, NodeProperty};
use attune_replica::Operation;
use attune_replica::messages::{Property, Target};
use attune_replica::schema::{Export, FamilySchema, Source};

use crate::report;
use number::Number;
use program::Copies;

/// Something of the node that others see.
#[derive(Clone, Copy)]
enum Shown {
    Number(Number),
    Size(*const Container),
}

pub struct Cluster {
    connection: Connection,
    imports: Vec<(GlobalId, Number, Source)>,
    exports: Vec<(Property, Shown)>,
    containers: Vec<(Property, *mut Container)>,
    /// Threads that a command suspended, by number, for the command that resumes them.
    suspended: Vec<(Property, Vec<u64>)>,
    copies: Copies,
    /// The copy has changed since handlers' imports were set.
    stale: bool,
    scheduler: &'static abi::Scheduler,
}

/// What an exchange has brought.
#[derive(Default)]
pub struct Heard {
    /// Handlers may read other values now.
    pub news: bool,
    pub commands: Vec<Command>,
    /// Answers to requests, by their numbers.
    pub answers: Vec<(u64, Value)>,
}

/// What a command of the master, or of another node, is about.
#[derive(Debug, PartialEq)]
pub enum Command {
    Suspend(Vec<u64>),
    Resume(Vec<u64>),
}

/// What a scheduler's tables say of it, for [`Cluster::join`].
pub struct Tables<'a> {
    pub scheduler: &'static abi::Scheduler,
    pub globals: &'static [Variable],
    pub containers: &'static [abi::ContainerInfo],
    /// The place at an offset of the state.
    pub state: &'a dyn Fn(usize) -> *mut u64,
}

impl Cluster {
    /// The node that the scheduler describes, in the cluster of that name. Err: why it is none.
    pub fn join(name: &str, tables: &Tables<'_>) -> Result<Cluster, String> {
        // SAFETY: null, or a constant of the scheduler.
        let node = unsafe { tables.scheduler.node.as_ref() };
        let node = node.ok_or(
            "ATTUNE_CLUSTER is set, but this is no scheduler of a cluster's node; to make one: \
             attune build MASTER.sched --node FAMILY -o FILE.so",
        )?;
        // SAFETY: texts of the scheduler, which are static.
        let description = unsafe { CStr::from_ptr(node.description) };
        let described = description.to_str().ok().and_then(packets::description_of);
        let (schema, family) =
            described.ok_or("it was compiled by another version of attune; compile it again")?;
        let own = schema.families[family].clone();
        let containers = own.commands.iter().filter_map(|(property, _)| {
            let name = property_name(&schema.properties, *property)?;
            Some((*property, container(tables, name)?.cast_mut()))
        });
        let containers = containers.collect();
        let exports = exports(&own, &schema.properties, tables);
        let imports = own.imports.iter().filter_map(|(global, source)| {
            let variable = tables.globals.get(index(*global))?;
            Some((*global, Number::new(variable, tables), *source))
        });
        let imports = imports.collect();
        let connection = Connection::new(Arc::new(schema), family, place::socket(name));
        Ok(Cluster {
            copies: Copies::of(connection.replica()),
            connection,
            imports,
            exports,
            containers,
            suspended: Vec::new(),
            stale: true,
            scheduler: tables.scheduler,
        })
    }

    /// The connection's descriptor, while there is one.
    pub fn descriptor(&self) -> Option<i32> {
        self.connection.descriptor()
    }

    /// When to look at the connection although nothing has come. Nanoseconds of the clock.
    pub fn next(&self) -> Option<i64> {
        self.connection.next()
    }

    /// Whether `schedule` may run: as many nodes have come as the families expect.
    pub fn has_started(&self) -> bool {
        self.connection.replica().has_started()
    }

    /// Whether news can make a thread ready.
    pub fn holds_threads(&self) -> bool {
        !self.suspended.is_empty()
    }

    /// Sets the imports for the handler that runs next.
    pub fn before_handler(&mut self, now: i64) {
        for (_, number, source) in &self.imports {
            let changes_by_itself = matches!(source, Source::Age | Source::Of(..));
            if !self.stale && !changes_by_itself {
                continue;
            }
            let replica = self.connection.replica();
            number.set(match *source {
                Source::Shared(shared) => replica.shared(shared),
                Source::Family(seat) => replica.family_in(seat),
                Source::Age => Value::Int(replica.age(now)),
                Source::Of(seat, property) => match self.own(property) {
                    // In its own seat a node knows its values as they are.
                    Some(own) if self.sits_in(seat) => own.get(),
                    _ => replica.property_in(seat, property),
                },
            });
        }
        self.stale = false;
    }

    /// Takes what the handler has assigned to imports: global, operation, operand.
    pub fn after_handler(&mut self, updates: &mut Vec<(u32, u32, i64)>) {
        let writes = !updates.is_empty();
        for (global, kind, operand) in updates.drain(..) {
            let import = self.imports.iter().find(|(id, ..)| index(*id) == global as usize);
            let Some(&(_, number, source)) = import else { continue };
            let bits = operand as u64;
            let operand = match kind & abi::BY_REAL {
                0 => number.read(bits),
                _ => Value::Float(f64::from_bits(bits)),
            };
            let Some(operation) = operation(kind & !abi::BY_REAL, operand) else { continue };
            self.write(source, operation);
        }
        for index in 0..self.exports.len() {
            let (property, shown) = self.exports[index];
            self.connection.replica_mut().tell(property, shown.get());
        }
        if writes {
            self.copies.refresh(self.connection.replica());
        }
    }

    /// Lets the copy speak, and hear what has come if anything has (`hears`).
    pub fn exchange(&mut self, now: i64, hears: bool) -> Heard {
        let connection = &mut self.connection;
        let heard = if hears { connection.exchange(now) } else { connection.speak(now) };
        let mut commands = Vec::new();
        for (property, operation) in heard.orders {
            commands.extend(self.obey(property, operation));
        }
        if let Some(why) = self.connection.take_refusal() {
            report::note(&format!("the cluster's manager refuses this node: {why}"));
        }
        self.stale |= heard.news;
        if heard.news {
            self.copies.refresh(self.connection.replica());
        }
        Heard { news: heard.news, commands, answers: heard.answers }
    }

    fn write(&mut self, source: Source, operation: Operation) {
        match source {
            Source::Shared(shared) => {
                self.connection.replica_mut().write(Target::Shared(shared), operation);
            }
            Source::Of(seat, property) if self.sits_in(seat) => {
                if let Some(Shown::Number(own)) = self.own(property) {
                    own.set(operation.apply(own.get()));
                }
            }
            Source::Of(seat, property) => {
                let replica = self.connection.replica_mut();
                if let Some(node) = replica.seated(seat) {
                    replica.write(Target::Of(node, property), operation);
                }
            }
            Source::Family(_) | Source::Age => {}
        }
    }

    /// Follows an order: writes a variable of the node's own, or says which threads are meant.
    fn obey(&mut self, property: Property, operation: Operation) -> Option<Command> {
        if let Some(Shown::Number(own)) = self.own(property) {
            own.set(operation.apply(own.get()));
            return None;
        }
        let &(_, container) = self.containers.iter().find(|(known, _)| *known == property)?;
        let known = self.suspended.iter().position(|(known, _)| *known == property);
        if operation.apply(Value::Int(0)).is(Value::Int(0)) {
            return known.map(|known| Command::Resume(self.suspended.swap_remove(known).1));
        }
        let threads = threads_in(self.scheduler, container);
        match known {
            Some(known) => self.suspended[known].1.extend(&threads),
            None => self.suspended.push((property, threads.clone())),
        }
        Some(Command::Suspend(threads))
    }

    fn own(&self, property: Property) -> Option<Shown> {
        self.exports.iter().find(|(known, _)| *known == property).map(|(_, shown)| *shown)
    }

    fn sits_in(&self, seat: u16) -> bool {
        let replica = self.connection.replica();
        replica.node().is_some() && replica.seated(seat) == replica.node()
    }
}

impl Shown {
    fn get(self) -> Value {
        match self {
            Shown::Number(number) => number.get(),
            // SAFETY: see the module's invariant.
            Shown::Size(container) => Value::Int(unsafe { (*container).size }.into()),
        }
    }
}

fn exports(
    family: &FamilySchema,
    properties: &[NodeProperty],
    tables: &Tables<'_>,
) -> Vec<(Property, Shown)> {
    let shown = family.exports.iter().filter_map(|(property, export)| {
        let shown = match export {
            Export::Global(global) => {
                let variable = tables.globals.get(index(*global))?;
                Shown::Number(Number::new(variable, tables))
            }
            Export::Size(_) => {
                Shown::Size(container(tables, property_name(properties, *property)?)?)
            }
        };
        Some((*property, shown))
    });
    shown.collect()
}

fn index(global: GlobalId) -> usize {
    global.into_raw().into_u32() as usize
}

/// The container that a property is about.
fn property_name(properties: &[NodeProperty], property: Property) -> Option<&str> {
    match properties.get(usize::from(property))? {
        NodeProperty::Size(name) | NodeProperty::Suspended(name) => Some(name),
        _ => None,
    }
}

fn container(tables: &Tables<'_>, name: &str) -> Option<*const Container> {
    let found = tables.containers.iter().find(|info| {
        // SAFETY: a text of the scheduler.
        unsafe { CStr::from_ptr(info.name) }.to_bytes() == name.as_bytes()
    });
    found.map(|info| (tables.state)(info.offset).cast_const().cast())
}

/// The numbers of a container's threads.
fn threads_in(scheduler: &abi::Scheduler, container: *mut Container) -> Vec<u64> {
    unsafe extern "C" fn note(threads: *mut c_void, thread: *mut abi::Thread) -> c_int {
        // SAFETY: the vector below, and a living thread's record.
        unsafe { (*threads.cast::<Vec<u64>>()).push((*thread).id) };
        0
    }
    let mut threads: Vec<u64> = Vec::new();
    if let Some(visit) = scheduler.container_each {
        // SAFETY: a container of the scheduler; no handler runs.
        unsafe { visit(container, note, (&raw mut threads).cast()) };
    }
    threads
}

/// By its number in compiled schedulers and in `attune.h`.
pub fn operation(kind: u32, operand: Value) -> Option<Operation> {
    Some(match kind {
        abi::SET => Operation::Set(operand),
        abi::ADD => Operation::Add(operand),
        abi::MULTIPLY => Operation::Multiply(operand),
        abi::DIVIDE => Operation::Divide(operand),
        abi::REMAINDER => Operation::Remainder(operand),
        _ => return None,
    })
}
