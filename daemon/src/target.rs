//! A process that may be tuned. Its descriptor is opened first, so all that is read of it later is
//! of this one process, although the kernel uses numbers again.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use attune_linux::process::{self, Process};
use attune_linux::procfs;

use crate::Error;

#[derive(Debug)]
pub struct Target {
    pub process: u32,
    pub name: String,
    /// Whose process it is; 0 is root.
    pub user: u32,
    pub descriptor: Process,
}

impl Target {
    pub fn open(process: u32) -> Result<Target, Error> {
        let gone = Error::NoProcess(process);
        let Ok(descriptor) = Process::open(process) else { return Err(gone) };
        let Ok(user) = process::user_of(process) else { return Err(gone) };
        let name = procfs::name(process);
        match descriptor.lives() {
            true => Ok(Target { process, name, user, descriptor }),
            false => Err(gone),
        }
    }

    /// Whether it runs this very file. Its name proves nothing, for a program chooses it; nor does
    /// the path that it sees, for a user may mount there what they like.
    pub fn runs(&self, file: &Path) -> bool {
        let identity = |path: &Path| {
            let there = fs::metadata(path).ok()?;
            Some((there.dev(), there.ino()))
        };
        let own = identity(Path::new(&format!("/proc/{}/exe", self.process)));
        own.is_some() && own == identity(file) && self.descriptor.lives()
    }
}
