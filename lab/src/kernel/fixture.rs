//! What the lab makes once for many runs of a workload.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::database::Database;
use super::films::Films;

#[derive(Clone, Copy, Debug)]
pub enum Fixture {
    Films(Films),
    Database(Database),
}

impl Fixture {
    /// What stands for its folder in a workload's words.
    pub fn placeholder(&self) -> &'static str {
        match self {
            Fixture::Films(_) => "{films}",
            Fixture::Database(_) => "{database}",
        }
    }

    /// Whether it is there or can be made.
    pub fn check(&self, folder: &Path) -> Result<()> {
        match self {
            Fixture::Films(films) => films.check(folder),
            Fixture::Database(database) => database.check(),
        }
    }

    /// Its place below `folder`.
    pub fn folder(&self, folder: &Path) -> PathBuf {
        match self {
            Fixture::Films(films) => films.folder(folder),
            Fixture::Database(database) => database.folder(folder),
        }
    }

    /// Its folder, with it in it.
    pub fn made(&self, folder: &Path, programs: &Path) -> Result<PathBuf> {
        match self {
            Fixture::Films(films) => films.made(folder),
            Fixture::Database(database) => database.made(folder, programs),
        }
    }
}
