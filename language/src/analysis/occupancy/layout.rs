//! Where in a [`State`](super::state::State) the facts about each container, variable and thread name stand.

use la_arena::ArenaMap;

use super::domain::{MANY, Places, Range};
use crate::ir::*;
use crate::protocol::Cpus;

/// Index of the thread that runs on this CPU among a state's individuals.
pub const RUNNING: usize = 0;
/// Index of the handler's parameter, where it is another thread than the running one.
pub const OTHER: usize = 1;
/// Index of the first `foreach` variable.
pub const FIRST_VISITED: usize = 2;

/// What of a container does not change.
#[derive(Clone, Copy, Debug)]
pub struct Home {
    /// The most threads that it, or each of its elements, can hold.
    pub capacity: u16,
    pub reach: Reach,
    /// The container of this CPU, or any of an array's elements.
    pub here: Places,
    /// The same container of another CPU.
    pub there: Places,
    /// Inside `schedule` it reads as holding only the threads that may run on this CPU.
    pub filtered: bool,
    /// A thread at `here`, and nowhere else, shows that the container is not empty.
    pub exact: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// One for all CPUs.
    Shared,
    /// The elements of an array, described together.
    Array(u32),
    /// One instance a CPU, on an engine with several.
    PerCpu,
    /// Of the handler that declares it.
    Local,
}

#[derive(Debug)]
pub struct Layout {
    pub cpus: Cpus,
    /// By the number of the container's id.
    pub homes: Vec<Home>,
    /// Containers by the number of their bit: this CPU's, and whether it is another CPU's.
    pub by_bit: Vec<(u16, bool)>,
    /// Index of each variable that is followed: scalar integers.
    pub globals: ArenaMap<GlobalId, u16>,
    pub locals: ArenaMap<LocalId, u16>,
    /// Globals first, then the locals of one handler at a time.
    pub global_count: usize,
    pub local_count: usize,
    /// Individuals: of parameters not set here, as it depends on the occasion.
    pub visited: ArenaMap<NameId, u16>,
    pub visited_count: usize,
    /// Attributes that are followed: those that only ever hold a few small constants, like a thread's state.
    pub traits: Vec<Trait>,
    /// Ascending; growing ranges of integers come to rest at them.
    pub thresholds: Vec<i64>,
}

/// An attribute whose values are all known: a set of values is a set of bits.
#[derive(Clone, Copy, Debug)]
pub struct Trait {
    pub attribute: AttributeId,
    /// Its value in a new thread.
    pub initial: u64,
    /// All that are ever assigned.
    pub values: u64,
}

/// Traits followed at once.
pub const MOST_TRAITS: usize = 8;

impl Layout {
    pub fn new(program: &Program, cpus: Cpus) -> Layout {
        let mut by_bit = Vec::new();
        let mut place = |container: u16, elsewhere: bool| {
            let bit = by_bit.len() as u32;
            if bit >= Places::BITS {
                return Places::CROWD;
            }
            by_bit.push((container, elsewhere));
            Places(1 << bit)
        };
        let homes = program
            .containers
            .iter()
            .map(|(id, container)| {
                let reach = match (container.extent, container.scope) {
                    (Extent::Array(length), _) => Reach::Array(length),
                    (_, Scope::Handler(_)) => Reach::Local,
                    (Extent::PerCpu, _) if cpus == Cpus::Many => Reach::PerCpu,
                    _ => Reach::Shared,
                };
                let number = number(id);
                let here = place(number, false);
                let there = if reach == Reach::PerCpu { place(number, true) } else { Places::UNBOUND };
                let array = matches!(reach, Reach::Array(_));
                Home {
                    capacity: if container.kind == ContainerKind::Threadref { 1 } else { MANY },
                    reach,
                    here,
                    there,
                    filtered: cpus == Cpus::Many
                        && container.scope == Scope::Scheduler
                        && reach != Reach::PerCpu,
                    exact: !array && here != Places::CROWD,
                }
            })
            .collect();

        let mut globals = ArenaMap::default();
        let mut global_count = 0;
        for (id, global) in program.globals.iter() {
            if global.ty != Type::Float && !matches!(global.extent, Extent::Array(_)) {
                globals.insert(id, global_count as u16);
                global_count += 1;
            }
        }

        let mut layout = Layout {
            cpus,
            homes,
            by_bit,
            globals,
            locals: ArenaMap::default(),
            global_count,
            local_count: 0,
            visited: ArenaMap::default(),
            visited_count: 0,
            traits: traits(program),
            thresholds: thresholds(program),
        };
        let handlers =
            program.handlers.iter().map(|handler| handler.parts.iter().map(|part| &part.routine).collect());
        let prologues = [&program.prologue, &program.thread_prologue].map(|routine| vec![routine]);
        let invariants = program.invariants.iter().map(|invariant| vec![&invariant.routine]);
        for routines in handlers.chain(prologues).chain(invariants) {
            layout.place_routines(program, &routines);
        }
        layout
    }

    /// Routines that run one after another share no variable; different handlers' variables share places.
    fn place_routines(&mut self, program: &Program, routines: &[&Routine]) {
        let mut locals = 0;
        let mut names = Names(Vec::new());
        for routine in routines {
            for &local in &routine.locals {
                let declared = &program.locals[local];
                if declared.ty != Type::Float
                    && declared.length.is_none()
                    && self.global_count + locals < usize::from(u16::MAX)
                {
                    self.locals.insert(local, (self.global_count + locals) as u16);
                    locals += 1;
                }
            }
            visit::block(program, &routine.body, &mut names);
        }
        for (index, name) in names.0.iter().enumerate() {
            self.visited.insert(*name, (FIRST_VISITED + index) as u16);
        }
        self.local_count = self.local_count.max(locals);
        self.visited_count = self.visited_count.max(names.0.len());
    }

    pub fn home(&self, container: u16) -> &Home {
        &self.homes[usize::from(container)]
    }

    /// Places as another CPU sees them: what is here for it may be there for us.
    pub fn seen_from_elsewhere(&self, places: Places) -> Places {
        self.map_per_cpu(places, |home, here| if here { home.there } else { home.here.with(home.there) })
    }

    /// Places without knowing which CPU's they are.
    pub fn on_any_cpu(&self, places: Places) -> Places {
        self.map_per_cpu(places, |home, _| home.here.with(home.there))
    }

    fn map_per_cpu(&self, places: Places, map: impl Fn(&Home, bool) -> Places) -> Places {
        if self.cpus == Cpus::One {
            return places;
        }
        places.each().fold(Places::UNBOUND, |mapped, place| {
            mapped.with(match self.by_bit.get(place.bit() as usize) {
                Some(&(container, elsewhere)) if self.home(container).reach == Reach::PerCpu => {
                    map(self.home(container), !elsewhere)
                }
                _ => place,
            })
        })
    }

    /// Whether sizes read from the container count only the threads that may run here.
    pub fn is_filtered(&self, container: u16, in_schedule: bool) -> bool {
        in_schedule && self.home(container).filtered
    }

    /// Outwards to thresholds, so that growing ranges come to an end.
    pub fn coarse(&self, range: Range) -> Range {
        let below = self.thresholds.partition_point(|&threshold| threshold <= range.lo);
        let above = self.thresholds.partition_point(|&threshold| threshold < range.hi);
        Range {
            lo: if below == 0 { i64::MIN } else { self.thresholds[below - 1] },
            hi: self.thresholds.get(above).copied().unwrap_or(i64::MAX),
        }
    }
}

/// A container's id as an index. The analysis gives up on programs with more than [`MOST_CONTAINERS`].
pub fn number(container: ContainerId) -> u16 {
    u32::from(container.into_raw()) as u16
}

pub const MOST_CONTAINERS: usize = 1 << 12;

/// A small constant as a set of one.
fn value_bit(value: Value) -> Option<u64> {
    match value {
        Value::Int(value @ 0..64) => Some(1 << value),
        _ => None,
    }
}

fn traits(program: &Program) -> Vec<Trait> {
    // Verbatim text may assign anything.
    if !program.verbatim.is_empty() {
        return Vec::new();
    }
    let candidates =
        program.attributes.iter().filter(|(_, attribute)| !attribute.import && attribute.ty == Type::Int);
    let candidates = candidates.filter_map(|(id, attribute)| {
        let initial = value_bit(attribute.initial)?;
        Some(Trait { attribute: id, initial, values: initial })
    });
    let mut assigned = Assigned { traits: candidates.collect() };
    for handler in &program.handlers {
        visit::handler(program, handler, &mut assigned);
    }
    let invariants = program.invariants.iter().map(|invariant| &invariant.routine);
    for routine in [&program.prologue, &program.thread_prologue].into_iter().chain(invariants) {
        visit::block(program, &routine.body, &mut assigned);
    }
    let mut traits = assigned.traits;
    traits.retain(|each| each.values.count_ones() > 1);
    traits.truncate(MOST_TRAITS);
    traits
}

struct Assigned {
    traits: Vec<Trait>,
}

impl visit::Visitor for Assigned {
    fn statement(&mut self, program: &Program, statement: &Statement) {
        let StatementKind::Assign { place: Place::Attribute(_, attribute), value } = statement.kind else {
            return;
        };
        let bit = match program.exprs[value].kind {
            ExprKind::Constant(value) => value_bit(value),
            _ => None,
        };
        match bit {
            Some(bit) => {
                self.traits
                    .iter_mut()
                    .filter(|each| each.attribute == attribute)
                    .for_each(|each| each.values |= bit);
            }
            None => self.traits.retain(|each| each.attribute != attribute),
        }
    }
}

struct Names(Vec<NameId>);

impl visit::Visitor for Names {
    fn statement(&mut self, _program: &Program, statement: &Statement) {
        if let StatementKind::Foreach { name, .. } = statement.kind {
            self.0.push(name);
        }
    }
}

/// The numbers that a program speaks of, with their neighbours.
fn thresholds(program: &Program) -> Vec<i64> {
    let constants = program.exprs.iter().filter_map(|(_, expr)| match expr.kind {
        ExprKind::Constant(Value::Int(value)) => Some(value),
        _ => None,
    });
    let initial = program.globals.iter().filter_map(|(_, global)| match global.initial {
        Value::Int(value) => Some(value),
        Value::Float(_) => None,
    });
    let lengths = program.containers.iter().filter_map(|(_, container)| match container.extent {
        Extent::Array(length) => Some(i64::from(length)),
        _ => None,
    });
    let mut thresholds: Vec<i64> = constants
        .chain(initial)
        .chain(lengths)
        .chain([0])
        .flat_map(|value| [value.saturating_sub(1), value, value.saturating_add(1)])
        .collect();
    thresholds.sort_unstable();
    thresholds.dedup();
    // Each threshold is a step that a loop's analysis may take.
    if thresholds.len() > 64 {
        let all = thresholds.len();
        let near_zero = |value: i64| (-1..=16).contains(&value);
        let mut kept = 0;
        thresholds.retain(|&value| {
            kept += 1;
            near_zero(value) || kept % all.div_ceil(32) == 0
        });
    }
    thresholds
}
