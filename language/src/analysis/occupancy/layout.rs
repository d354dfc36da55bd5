//! Where in a [`State`](super::state::State) the facts about each container, variable and thread
//! name stand.

use la_arena::ArenaMap;

use super::lattice::{MANY, Places, Range};
use super::prepared::{Prepared, Trait};
use super::relevance::Relevance;
use crate::engine::protocol::Cpus;
use crate::ir::*;

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
    /// It belongs to the handler that declares it.
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
    /// Individuals by name; a parameter has no entry, as its individual depends on the occasion.
    pub visited: ArenaMap<NameId, u16>,
    pub visited_count: usize,
    /// Attributes that are followed: those that only ever hold a few small constants, like a
    /// thread's state.
    pub traits: Vec<Trait>,
    /// Other attributes by which arrays are indexed: each is a variable of each individual, behind
    /// the locals.
    pub indexing: Vec<AttributeId>,
    /// Ascending; growing ranges of integers come to rest at them.
    pub thresholds: Vec<i64>,
}

impl Layout {
    pub fn new(program: &Program, prepared: &Prepared, cpus: Cpus) -> Layout {
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
                let there =
                    if reach == Reach::PerCpu { place(number, true) } else { Places::UNBOUND };
                let array = matches!(reach, Reach::Array(_));
                Home {
                    capacity: if container.kind == ContainerKind::Threadref { 1 } else { MANY },
                    reach,
                    here,
                    there,
                    filtered: cpus == Cpus::Many && container.is_shared(),
                    exact: !array && here != Places::CROWD,
                }
            })
            .collect();

        let mut globals = ArenaMap::default();
        let mut global_count = 0;
        for (id, global) in program.globals.iter() {
            // What is read of an import with a range is not what was assigned.
            if global.ty != Type::Float
                && global.terms.range.is_none()
                && !matches!(global.extent, Extent::Array(_))
                && prepared.relevance.has_global(id)
            {
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
            traits: prepared.traits.clone(),
            indexing: prepared.indexing.clone(),
            thresholds: prepared.thresholds.clone(),
        };
        let handlers = program
            .handlers
            .iter()
            .map(|handler| handler.parts.iter().map(|part| &part.routine).collect());
        let prologues = [&program.prologue, &program.thread_prologue].map(|routine| vec![routine]);
        let invariants = program.invariants.iter().map(|invariant| vec![&invariant.routine]);
        for routines in handlers.chain(prologues).chain(invariants) {
            layout.place_routines(program, &routines, &prepared.relevance);
        }
        if layout.variable_count() > usize::from(u16::MAX) {
            layout.indexing.clear();
        }
        layout
    }

    /// The individuals that a state speaks of.
    pub fn individual_count(&self) -> usize {
        FIRST_VISITED + self.visited_count
    }

    pub fn variable_count(&self) -> usize {
        self.attributes_start() + self.individual_count() * self.indexing.len()
    }

    /// The first variable that is an individual's attribute.
    pub fn attributes_start(&self) -> usize {
        self.global_count + self.local_count
    }

    /// The variable that is this attribute of this individual.
    pub fn attribute_of(&self, individual: usize, attribute: AttributeId) -> Option<u16> {
        let index = self.indexing.iter().position(|&each| each == attribute)?;
        Some((self.attributes_start() + individual * self.indexing.len() + index) as u16)
    }

    /// The variables that are this individual's attributes.
    pub fn attributes_of(&self, individual: usize) -> std::ops::Range<usize> {
        let start = self.attributes_start() + individual * self.indexing.len();
        start..start + self.indexing.len()
    }

    /// Routines that run one after another share no variable; different handlers' variables share
    /// places.
    fn place_routines(&mut self, program: &Program, routines: &[&Routine], relevance: &Relevance) {
        let mut locals = 0;
        let mut names = Names(Vec::new());
        for routine in routines {
            for &local in &routine.locals {
                let declared = &program.locals[local];
                if declared.ty != Type::Float
                    && declared.length.is_none()
                    && relevance.has_local(local)
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
        self.map_per_cpu(
            places,
            |home, here| if here { home.there } else { home.here.with(home.there) },
        )
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

/// A container's id as an index. The analysis gives up on programs with more than
/// [`MOST_CONTAINERS`].
pub fn number(container: ContainerId) -> u16 {
    u32::from(container.into_raw()) as u16
}

pub const MOST_CONTAINERS: usize = 1 << 12;

struct Names(Vec<NameId>);

impl visit::Visitor for Names {
    fn statement(&mut self, _program: &Program, statement: &Statement) {
        if let StatementKind::Foreach { name, .. } = statement.kind {
            self.0.push(name);
        }
    }
}
