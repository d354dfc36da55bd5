//! Holds a loaded scheduler's programs and its memory: what a caller can ask of it and set, whether
//! or not it schedules.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use attune_values::wire::Tunable;

use crate::image::Image;
use crate::locked_copy::Copier;
use crate::memory::Memory;
use crate::rescues::{Rescued, Rescues};
use crate::snapshot::{self, Snapshot, SnapshotError};
use crate::tunables::{self, SetError};

/// It outlives the scheduler as long as a holder asks for it.
pub(crate) struct Loaded {
    pub image: Image,
    pub memory: Memory,
    pub copier: Mutex<Copier>,
    /// The scheduler has been attached, or never will be.
    pub begun: OnceLock<()>,
    pub rescues: Mutex<Rescues>,
    /// The number of its command's threads: [`crate::Members`].
    pub run: u32,
    pub cpus: u32,
    // Behind `memory`, which lies in it.
    pub object: libbpf_rs::Object,
}

impl Loaded {
    pub fn set(&self, settings: &[(String, String)]) -> Result<(), SetError> {
        let words = tunables::words(&self.image, &self.memory, settings)?;
        if words.is_empty() {
            return Ok(());
        }
        let stored = self.copier().store(&self.image, &self.memory, &words);
        stored.map_err(|error| SetError::Unable(error.to_string()))
    }

    pub fn tunables(&self) -> Vec<Tunable> {
        tunables::all(&self.image, &self.memory)
    }

    pub fn snapshot(&self) -> Result<Snapshot, SnapshotError> {
        let mut snapshot =
            snapshot::take(&self.image, &self.memory, &mut self.copier(), self.cpus)?;
        snapshot.rescued = self.rescued();
        Ok(snapshot)
    }

    /// From where the engine has run threads that waited too long, so far.
    pub fn rescued(&self) -> Vec<Rescued> {
        let mut rescues = self.rescues.lock().unwrap_or_else(PoisonError::into_inner);
        rescues.read(&self.image, &self.memory).to_vec()
    }

    /// For what is asked of a scheduler: `init` would undo what is set before it is attached.
    fn copier(&self) -> MutexGuard<'_, Copier> {
        self.begun.wait();
        self.copier_now()
    }

    /// A panic in between has left nothing half done.
    pub fn copier_now(&self) -> MutexGuard<'_, Copier> {
        self.copier.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
