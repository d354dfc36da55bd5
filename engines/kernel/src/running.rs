//! Attaches a scheduler in the kernel, observes and changes it while it works, and detaches it.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use attune_values::wire::Tunable;
use libbpf_rs::libbpf_sys;
use libbpf_rs::{AsRawLibbpf, Link, MapCore, Object, Program, RingBuffer, RingBufferBuilder};

use crate::expedite::{Attached, expedited};
use crate::failure::{self, Exit};
use crate::followed::{Changes, Followed};
use crate::fresh;
use crate::image::Image;
use crate::load::{self, Error, Settings};
use crate::loaded::Loaded;
use crate::locked_copy::Copier;
use crate::members;
use crate::node::{Member, Told};
use crate::program_call;
use crate::reload;
use crate::rescues::{Rescued, Rescues};
use crate::statistics::Statistics;
use crate::support;
use crate::tunables::SetError;
use crate::values::Values;

/// A scheduler in the kernel. Dropping it detaches it.
pub struct Running {
    // Links stand in front of what they belong to, so that they are dropped first.
    link: Option<Attached>,
    _listening: Vec<Link>,
    /// What the program tells: that it has ended, and of CPUs.
    news: RingBuffer<'static>,
    changes: Changes,
    loaded: Arc<Loaded>,
}

/// A scheduler that the kernel has verified and that schedules nothing yet. Processes may supply
/// values already, so that its first decisions know them.
pub struct Prepared {
    loaded: Arc<Loaded>,
    implicit: bool,
}

/// Loads: the kernel's verifier takes the scheduler.
pub fn prepare(image: Image, settings: &Settings) -> Result<Prepared, Error> {
    let (made, wanted) = (image.instances(), settings.division.instances());
    if made != wanted {
        return Err(Error::OtherInstances { scheduler: image.scheduler(), made, wanted });
    }
    let object = load::object(&image, settings)?;
    tell_origin(&object).map_err(|error| load::refused(&image, error))?;
    let memory = load::memory_of(&image, &object)?;
    let copier =
        Copier::new(&object).ok_or(Error::Inconsistent("it lacks the programs that copy"))?;
    let (copier, rescues) = (Mutex::new(copier), Mutex::new(Rescues::default()));
    let (cpus, begun) = (settings.cpus, OnceLock::new());
    let run = settings.members.own();
    let loaded = Loaded { image, memory, copier, begun, rescues, run, cpus, object };
    Ok(Prepared { loaded: Arc::new(loaded), implicit: settings.implicit })
}

/// Programs that hear of what happens elsewhere in the kernel, as far as an object has them.
const LISTENERS: [&str; 3] = ["attune_executes", "attune_cpu_leaves", "attune_cpu_stays"];

/// Loads and attaches: from now on the scheduler schedules.
pub fn start(image: Image, settings: &Settings) -> Result<Running, Error> {
    prepare(image, settings)?.attach()
}

impl Prepared {
    /// What other processes may say to it: values for its thread imports, and `owner`, a user, and
    /// root what to set; that waits until it is attached. `trust`: programs of every user may say
    /// what is the loader's to say. At most one is in use at a time.
    pub fn values(&self, owner: u32, trust: bool) -> Result<Values, libbpf_rs::Error> {
        Values::new(self.loaded.clone(), owner, trust)
    }

    /// As [`Running::members`].
    pub fn members(&self) -> io::Result<OwnedFd> {
        members::map_of(&self.loaded.object)
    }

    pub fn attach(self) -> Result<Running, Error> {
        let Loaded { image, object, .. } = &*self.loaded;
        let link = expedited(|| attach_scheduler(object));
        let link = link.map_err(|error| match support::busy() {
            // It came while this one was compiled and verified.
            Some(busy) => Error::Missing(busy),
            None => load::refused(image, error),
        })?;
        let link = link.as_fd().try_clone_to_owned().ok().map(Attached::from);
        let listens = |name: &OsStr| {
            LISTENERS.iter().any(|it| name == *it) || self.implicit && load::is_timer_program(name)
        };
        let mut listening = Vec::new();
        for program in object.progs().filter(|program| listens(program.name())) {
            listening.push(attach_program(&program).map_err(|error| load::refused(image, error))?);
        }
        let changes = Changes::default();
        let news = news(object, changes.clone()).map_err(|error| load::refused(image, error))?;
        let loaded = self.loaded.clone();
        Ok(Running { link, _listening: listening, news, changes, loaded })
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // Threads that ask it for something wait for that.
        let _ = self.loaded.begun.set(());
    }
}

/// Lets the program say where its memory is, which [`load::memory_of`] reads.
fn tell_origin(object: &Object) -> libbpf_rs::Result<()> {
    let program = object.progs().find(|program| program.name() == "attune_tell_origin");
    let program = program.ok_or_else(|| io::Error::other("the object lacks attune_tell_origin"))?;
    Ok(program_call::with(program.as_fd(), 0u64)?)
}

/// Makes the map of operations the machine's scheduler, until the link is dropped.
fn attach_scheduler(object: &Object) -> libbpf_rs::Result<Link> {
    let map = object.maps().find(|map| map.name() == "attune_ops");
    let map = map.ok_or_else(|| io::Error::other("the object lacks attune_ops"))?;
    // SAFETY: a map of a loaded object.
    link(unsafe { libbpf_sys::bpf_map__attach_struct_ops(map.as_libbpf_object().as_ptr()) })
}

fn attach_program(program: &Program<'_>) -> libbpf_rs::Result<Link> {
    // SAFETY: a program of a loaded object.
    link(unsafe { libbpf_sys::bpf_program__attach(program.as_libbpf_object().as_ptr()) })
}

/// What libbpf has made just now; NULL: errno says why it has not.
fn link(made: *mut libbpf_sys::bpf_link) -> libbpf_rs::Result<Link> {
    let made = NonNull::new(made).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: libbpf has just made it for this caller.
    Ok(unsafe { Link::from_ptr(made) })
}

/// Readable when the scheduler has ended, and when a CPU came or went.
fn news(object: &Object, changes: Changes) -> libbpf_rs::Result<RingBuffer<'static>> {
    let map = object.maps().find(|map| map.name() == "attune_news");
    let map = map.ok_or_else(|| io::Error::other("the object lacks attune_news"))?;
    let mut builder = RingBufferBuilder::new();
    builder.add(&map, move |message| {
        changes.hear(message);
        0
    })?;
    builder.build()
}

impl Running {
    /// The scheduler's name; of several, all.
    pub fn scheduler(&self) -> String {
        self.loaded.image.scheduler()
    }

    /// The names of its schedulers: one, or the commands' and the others'.
    pub fn policies(&self) -> impl Iterator<Item = &str> {
        self.loaded.image.policies()
    }

    /// The map that says which threads are whose: [`crate::Members::map`]. `NotFound` where there
    /// is one policy only.
    pub fn members(&self) -> io::Result<OwnedFd> {
        members::map_of(&self.loaded.object)
    }

    /// Children that the calling thread has while `born` runs follow the command's policy, and all
    /// that descend from them. `NotFound` where there is one policy only.
    pub fn as_command<T>(&self, born: impl FnOnce() -> T) -> io::Result<T> {
        self.adopt(self.loaded.run)?;
        let result = born();
        self.adopt(0)?;
        Ok(result)
    }

    fn adopt(&self, number: u32) -> io::Result<()> {
        /// `struct attune_adoption`.
        #[repr(C)]
        struct Adoption {
            pid: i32,
            number: u32,
        }
        let program = self.loaded.object.progs().find(|program| program.name() == "attune_adopt");
        let program = program.ok_or(io::ErrorKind::NotFound)?;
        let pid = attune_linux::process::this_thread() as i32;
        let adoption = Adoption { pid, number };
        program_call::with(program.as_fd(), adoption)
    }

    pub fn statistics(&self) -> Statistics {
        let Loaded { image, memory, .. } = &*self.loaded;
        Statistics::read(image, memory, memory)
    }

    /// From where the engine has run threads that waited too long under the scheduler. Asked ten
    /// times a second it misses none.
    pub fn rescued(&self) -> Vec<Rescued> {
        self.loaded.rescued()
    }

    /// How it ended, once the kernel has thrown it out.
    pub fn exit(&self) -> Option<Exit> {
        failure::exit(&self.loaded.image, &self.loaded.memory)
    }

    /// CPUs that came or went since the last call, and it has gone on.
    pub fn followed(&self) -> Vec<Followed> {
        self.changes.take()
    }

    /// Waits until the kernel has ended it, a CPU comes or goes, a signal comes, or so much time
    /// has passed.
    pub fn wait(&self, at_most: Duration) {
        // An interruption is as good as a timeout; whether it has ended, `exit` says.
        let _ = self.news.poll(at_most);
    }

    /// Attaches again what was lent. What was set, the values of programs, hints and the sides of
    /// threads stay; threads and the policy start anew.
    pub fn reload(&mut self) -> Result<(), Error> {
        // No policy schedules until it is attached, so what is in between is expedited, too.
        expedited(|| {
            // The kernel has finished with it when the link is gone.
            self.link = None;
            self.link = Some(reload::attach(&self.loaded)?);
            Ok(())
        })
    }

    /// Detaches, so that another process can attach a scheduler; [`Running::reload`] attaches this
    /// one again.
    pub fn lend(&mut self) {
        self.link = None;
        let Loaded { image, memory, .. } = &*self.loaded;
        // An object that was attached has them.
        let _ = fresh::none_is_ready(image, memory);
    }

    /// It holds the kernel's scheduler: it has not been lent.
    pub fn is_attached(&self) -> bool {
        self.link.is_some()
    }

    /// As [`Prepared::values`], for one that has lent the machine.
    pub fn values(&self, owner: u32, trust: bool) -> Result<Values, libbpf_rs::Error> {
        Values::new(self.loaded.clone(), owner, trust)
    }

    /// The name of its cluster's master; None: it is no node.
    pub fn cluster(&self) -> Option<&str> {
        self.loaded.image.description.node.as_ref().map(|node| node.cluster.as_str())
    }

    /// Makes it a node of the cluster whose manager listens, or will listen, at `path`; `told`
    /// hears what becomes of that. An error: it is no node, or not of this version.
    pub fn join(
        &self,
        path: PathBuf,
        told: impl FnMut(Told) + Send + 'static,
    ) -> io::Result<Member> {
        Member::join(self.loaded.clone(), path, told)
    }

    /// All that can be set, and what it is now.
    pub fn tunables(&self) -> Vec<Tunable> {
        self.loaded.tunables()
    }

    /// Detaches, and says how it ended.
    pub fn stop(mut self) -> Exit {
        self.link = None;
        // The kernel tells the program the reason before it gives the link free.
        self.exit().unwrap_or_default()
    }

    /// Changes tunables and global imports, all of them or none: `period=10ms`, `fair.period=10ms`;
    /// what a value may be, [`SetError`] says.
    pub fn set(&self, settings: &[(String, String)]) -> Result<(), SetError> {
        self.loaded.set(settings)
    }
}
