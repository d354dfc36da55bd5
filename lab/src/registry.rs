//! Lists all experiments, which a user finds by their names.

use crate::experiment::Experiment;
use crate::{cluster, demo, embedded, kernel, rhythm, scale, threads, webserver};

pub const EXPERIMENTS: &[&dyn Experiment] = &[
    &demo::EXPERIMENT,
    &webserver::EXPERIMENT,
    &webserver::proxy::EXPERIMENT,
    &cluster::webapp::EXPERIMENT,
    &cluster::cameras::EXPERIMENT,
    &cluster::pool::EXPERIMENT,
    &cluster::partition::EXPERIMENT,
    &cluster::shared::EXPERIMENT,
    &kernel::switch_cost::EXPERIMENT,
    &kernel::fairness::EXPERIMENT,
    &kernel::wakeup_latency::EXPERIMENT,
    &kernel::random_schedulers::EXPERIMENT,
    &kernel::reserve::EXPERIMENT,
    &kernel::cgroups::EXPERIMENT,
    &kernel::starvation::EXPERIMENT,
    &kernel::hotplug::EXPERIMENT,
    &kernel::sleep::EXPERIMENT,
    &kernel::join::EXPERIMENT,
    &kernel::restless::EXPERIMENT,
    &kernel::trust::EXPERIMENT,
    &kernel::clients::EXPERIMENT,
    &kernel::flood::EXPERIMENT,
    &kernel::coop::baseline::EXPERIMENT,
    &kernel::coop::many::EXPERIMENT,
    &kernel::coop::fairness::EXPERIMENT,
    &kernel::coop::implicit::EXPERIMENT,
    &kernel::coop::groups::EXPERIMENT,
    &kernel::coop::cpus::EXPERIMENT,
    &kernel::coop::instances::EXPERIMENT,
    &kernel::coop::misbehave::EXPERIMENT,
    &kernel::coop::overhead::EXPERIMENT,
    &kernel::coop::periodic::EXPERIMENT,
    &kernel::coop::outside::EXPERIMENT,
    &kernel::coop::x11::EXPERIMENT,
    &kernel::coop::hd::EXPERIMENT,
    &kernel::coop::legacy::EXPERIMENT,
    &kernel::coop::user_level::EXPERIMENT,
    &kernel::focus::frames::EXPERIMENT,
    &kernel::focus::latency::EXPERIMENT,
    &kernel::focus::first_key::EXPERIMENT,
    &kernel::focus::session::EXPERIMENT,
    &kernel::focus::window::EXPERIMENT,
    &kernel::focus::sound::EXPERIMENT,
    &kernel::focus::classify::EXPERIMENT,
    &kernel::focus::two::EXPERIMENT,
    &kernel::focus::adaptive::EXPERIMENT,
    &kernel::focus::cost::EXPERIMENT,
    &kernel::focus::all::EXPERIMENT,
    &kernel::transactions::EXPERIMENT,
    &rhythm::period_window::EXPERIMENT,
    &rhythm::period_cost::EXPERIMENT,
    &rhythm::controllers::EXPERIMENT,
    &rhythm::bandwidth::EXPERIMENT,
    &rhythm::trace_overhead::EXPERIMENT,
    &rhythm::period_load::EXPERIMENT,
    &rhythm::tune_load::EXPERIMENT,
    &rhythm::light_player::EXPERIMENT,
    &threads::yield_cost::EXPERIMENT,
    &threads::thread_scale::EXPERIMENT,
    &embedded::weather::EXPERIMENT,
    &embedded::thread_metric::EXPERIMENT,
    &embedded::web::EXPERIMENT,
    &cluster::sim::EXPERIMENT,
    &scale::EXPERIMENT,
    &kernel::machine_messages::EXPERIMENT,
];

/// The experiments of these names, each once, in the order of [`EXPERIMENTS`]; a name may have the
/// wildcards of a shell. Err: a name that no experiment has.
pub fn find(names: &[String]) -> Result<Vec<&'static dyn Experiment>, &str> {
    let mut wanted = vec![false; EXPERIMENTS.len()];
    for name in names {
        let pattern = glob::Pattern::new(name).map_err(|_| name.as_str())?;
        let mut found = false;
        for (wanted, experiment) in wanted.iter_mut().zip(EXPERIMENTS) {
            if pattern.matches(experiment.name()) {
                (*wanted, found) = (true, true);
            }
        }
        if !found {
            return Err(name);
        }
    }
    let chosen = EXPERIMENTS.iter().zip(wanted).filter(|(_, wanted)| *wanted);
    Ok(chosen.map(|(experiment, _)| *experiment).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[&str]) -> Result<Vec<&'static str>, String> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let experiments = find(&names).map_err(str::to_owned)?;
        Ok(experiments.into_iter().map(Experiment::name).collect())
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
