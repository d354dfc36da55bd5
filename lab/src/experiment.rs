//! What an experiment is: a claim of the project, and a way for anybody to see whether it holds.

use std::path::PathBuf;

use anyhow::Result;

use crate::report::Report;

/// How to run an experiment.
#[derive(Clone, Debug)]
pub struct Options {
    /// Fewer repetitions and levels: shows that it works, not how well.
    pub quick: bool,
    /// Ignores the run cache.
    pub fresh: bool,
    /// The folder of the project's built programs.
    pub programs: PathBuf,
    /// The experiment writes into this folder.
    pub folder: PathBuf,
}

/// Takes a few words that say what the experiment is doing.
pub type Progress<'a> = &'a dyn Fn(&str);

pub trait Experiment: Sync {
    fn name(&self) -> &'static str;

    /// One sentence, for lists.
    fn about(&self) -> &'static str;

    /// Whether this machine can run it; takes no time, so that a caller can check several
    /// experiments before it runs the first. Err: what is missing, and what installs it.
    fn check(&self, options: &Options) -> Result<()>;

    /// Err: it could not run, which says nothing about the claims; the report says which claims
    /// hold.
    fn run(&self, options: &Options, progress: Progress) -> Result<Report>;
}

/// An experiment that is two functions.
pub struct Procedure {
    pub name: &'static str,
    pub about: &'static str,
    pub check: fn(&Options) -> Result<()>,
    pub run: fn(&Options, Progress) -> Result<Report>,
}

/// The check of an experiment that needs nothing but a processor.
pub fn nothing_needed(_: &Options) -> Result<()> {
    Ok(())
}

impl Experiment for Procedure {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn check(&self, options: &Options) -> Result<()> {
        (self.check)(options)
    }

    fn run(&self, options: &Options, progress: Progress) -> Result<Report> {
        (self.run)(options, progress)
    }
}
