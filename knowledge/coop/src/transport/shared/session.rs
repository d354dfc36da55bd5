//! A session: the programs of one user that name the same directory cooperate.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use attune_linux::process;

/// A directory that belongs to the user and that no other user can enter. The programs that name it
/// form one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    directory: PathBuf,
}

impl Default for Session {
    /// `attune-coop` in $XDG_RUNTIME_DIR; without that, `/dev/shm/attune-coop-UID`.
    fn default() -> Session {
        match std::env::var_os("XDG_RUNTIME_DIR").filter(|directory| !directory.is_empty()) {
            Some(directory) => Session::at(PathBuf::from(directory).join("attune-coop")),
            None => Session::at(format!("/dev/shm/attune-coop-{}", process::effective_user())),
        }
    }
}

impl Session {
    pub fn at(directory: impl Into<PathBuf>) -> Session {
        Session { directory: directory.into() }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes the directory if it is not there. Refuses one that others could have prepared.
    pub(super) fn prepare(&self) -> io::Result<()> {
        match std::fs::DirBuilder::new().mode(0o700).create(&self.directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let metadata = std::fs::symlink_metadata(&self.directory)?;
        let user = process::effective_user();
        let refuse =
            |message: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        if !metadata.is_dir() {
            return refuse("it is no directory".to_owned());
        }
        if metadata.uid() != user || metadata.mode() & 0o077 != 0 {
            return refuse(format!(
                "it must belong to user {user} and be closed to others (mode 700)"
            ));
        }
        Ok(())
    }
}
