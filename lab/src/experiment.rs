//! What an experiment is: a claim of the project, and a way for anybody to see whether it holds.

use std::path::PathBuf;

use anyhow::Result;

use crate::report::Report;

/// How an experiment is to be run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Fewer repetitions and levels: shows that it works, not how well.
    pub quick: bool,
    /// Runs are made again also where they were made before with all the same inputs.
    pub fresh: bool,
    /// Where the project's built programs are.
    pub programs: PathBuf,
    /// For what the experiment writes while it runs, in a folder of its name.
    pub folder: PathBuf,
}

/// Called with what is being done, in a few words.
pub type Progress<'a> = &'a dyn Fn(&str);

/// One experiment.
pub struct Experiment {
    pub name: &'static str,
    /// In one sentence, for lists.
    pub about: &'static str,
    pub method: &'static dyn Method,
}

/// How an experiment is made.
pub trait Method: Sync {
    /// Whether it can be run here; takes no time, so that it can be asked of several before the first is run. Err: what it lacks, and
    /// where to get it.
    fn check(&self, options: &Options) -> Result<()>;

    /// Runs it; says what it is doing. Err: it could not be run, which says nothing about
    /// the claim; a claim that does not hold is in the report.
    fn run(&self, options: &Options, progress: Progress) -> Result<Report>;
}

/// A method of its own, as functions.
pub struct Procedure {
    /// See [`Method::check`].
    pub check: fn(&Options) -> Result<()>,
    /// See [`Method::run`].
    pub run: fn(&Options, Progress) -> Result<Report>,
}

/// Of what needs nothing but a processor.
pub fn nothing_needed(_: &Options) -> Result<()> {
    Ok(())
}

impl Method for Procedure {
    fn check(&self, options: &Options) -> Result<()> {
        (self.check)(options)
    }

    fn run(&self, options: &Options, progress: Progress) -> Result<Report> {
        (self.run)(options, progress)
    }
}

/// All that there are.
pub const EXPERIMENTS: &[Experiment] = &[
    crate::webserver::EXPERIMENT,
    crate::kernel::switch_cost::EXPERIMENT,
    crate::kernel::fairness::EXPERIMENT,
    crate::kernel::wakeup_latency::EXPERIMENT,
    crate::kernel::random_schedulers::EXPERIMENT,
    crate::kernel::reserve::EXPERIMENT,
    crate::kernel::coop::baseline::EXPERIMENT,
    crate::kernel::coop::many::EXPERIMENT,
    crate::kernel::coop::fairness::EXPERIMENT,
    crate::kernel::coop::implicit::EXPERIMENT,
    crate::kernel::coop::domains::EXPERIMENT,
    crate::kernel::coop::cpus::EXPERIMENT,
    crate::kernel::coop::misbehave::EXPERIMENT,
    crate::kernel::coop::overhead::EXPERIMENT,
    crate::kernel::coop::periodic::EXPERIMENT,
    crate::kernel::coop::outside::EXPERIMENT,
    crate::kernel::coop::x11::EXPERIMENT,
    crate::kernel::coop::hd::EXPERIMENT,
    crate::kernel::coop::legacy::EXPERIMENT,
    crate::kernel::coop::user_level::EXPERIMENT,
    crate::rhythm::period_window::EXPERIMENT,
    crate::rhythm::period_cost::EXPERIMENT,
    crate::rhythm::controllers::EXPERIMENT,
    crate::rhythm::bandwidth::EXPERIMENT,
    crate::rhythm::trace_overhead::EXPERIMENT,
    crate::rhythm::period_load::EXPERIMENT,
    crate::rhythm::tune_load::EXPERIMENT,
    crate::rhythm::light_player::EXPERIMENT,
];

/// The experiments of these names, each once, in the order of [`EXPERIMENTS`]; a name may have the wildcards of a shell. Err: a name that none has.
pub fn find(names: &[String]) -> Result<Vec<&'static Experiment>, &str> {
    let mut wanted = vec![false; EXPERIMENTS.len()];
    for name in names {
        let pattern = glob::Pattern::new(name).map_err(|_| name.as_str())?;
        let mut found = false;
        for (wanted, experiment) in wanted.iter_mut().zip(EXPERIMENTS) {
            if pattern.matches(experiment.name) {
                (*wanted, found) = (true, true);
            }
        }
        if !found {
            return Err(name);
        }
    }
    Ok(EXPERIMENTS
        .iter()
        .zip(wanted)
        .filter_map(|(experiment, wanted)| wanted.then_some(experiment))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[&str]) -> Result<Vec<&'static str>, String> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let experiments = find(&names).map_err(str::to_owned)?;
        Ok(experiments.into_iter().map(|experiment| experiment.name).collect())
    }

    #[test]
    fn names_and_patterns_find_experiments() {
        assert_eq!(found(&["fairness"]).unwrap(), ["fairness"]);
        assert_eq!(found(&["tune-load", "fairness", "fair*"]).unwrap(), ["fairness", "tune-load"]);
        let coop = found(&["coop-*"]).unwrap();
        assert!(coop.len() > 10 && coop.iter().all(|name| name.starts_with("coop-")), "{coop:?}");
        for wrong in ["coop", "", "[", "no-*"] {
            assert_eq!(found(&["fairness", wrong]).unwrap_err(), wrong);
        }
    }
}
