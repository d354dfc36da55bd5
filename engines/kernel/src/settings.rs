//! What can be changed in a running scheduler: its tunables and its global imports.

use attune_values::text;

use crate::description::{Global, Policy};
use crate::image::Image;
use crate::memory::Memory;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SetError {
    #[error("there is no tunable `{name}` in {of}; {}", known(.tunables))]
    Unknown { of: String, name: String, tunables: Vec<String> },
    #[error("no scheduler here is called `{name}`: there is {}", .policies.join(" and "))]
    UnknownPolicy { name: String, policies: Vec<String> },
    #[error("both schedulers are called {0}: say `command.NAME` or `others.NAME`")]
    Ambiguous(String),
    #[error("`{value}` is no value for {name}, which is a time: a number with a unit, such as 10ms")]
    NoTime { name: String, value: String },
    #[error("`{value}` is no value for {name}, which is a number without a unit")]
    NoNumber { name: String, value: String },
}

fn known(tunables: &[String]) -> String {
    match tunables {
        [] => "there is none at all".to_string(),
        names => format!("there is {}", names.join(", ")),
    }
}

/// What the two schedulers of a machine are also called, whatever their names.
const ROLES: [&str; 2] = ["command", "others"];

/// `name` is a tunable's, or a scheduler's and a tunable's: `fair.period`. Where two schedulers share the machine and none is said, it
/// is the command's if that has one of this name; they are also called `command` and `others`. The value of a time has a unit.
pub(crate) fn set(image: &Image, memory: &Memory, name: &str, value: &str) -> Result<(), SetError> {
    let global = find(&image.description.policies, name)?;
    let number = parse(global, value)?;
    // A tunable that no handler reads has no place, and nothing to change.
    if let Some(address) = memory.address(image, &global.c_name) {
        memory.set_u64(address + global.offset(), number as u64);
    }
    Ok(())
}

fn find<'a>(policies: &'a [Policy], name: &str) -> Result<&'a Global, SetError> {
    let (among, name): (Vec<&Policy>, &str) = match name.split_once('.') {
        None => (policies.iter().collect(), name),
        Some((policy, name)) => (vec![called(policies, policy)?], name),
    };
    let settable = |policy: &&'a Policy| policy.globals.iter().filter(|global| global.is_settable());
    let found = among.iter().flat_map(settable).find(|global| global.name == name);
    found.ok_or_else(|| {
        let of: Vec<String> = among.iter().map(|policy| policy.name.clone()).collect();
        let tunables = among.iter().flat_map(settable).map(|global| global.name.clone()).collect();
        SetError::Unknown { of: of.join(" and "), name: name.to_string(), tunables }
    })
}

fn called<'a>(policies: &'a [Policy], name: &str) -> Result<&'a Policy, SetError> {
    let mut named = policies.iter().filter(|policy| policy.name == name);
    match (named.next(), named.next()) {
        (Some(policy), None) => return Ok(policy),
        (Some(policy), Some(_)) => return Err(SetError::Ambiguous(policy.name.clone())),
        _ => {}
    }
    let role = ROLES.iter().position(|role| *role == name).filter(|_| policies.len() > 1);
    role.and_then(|role| policies.get(role)).ok_or_else(|| {
        let policies = policies.iter().map(|policy| policy.name.clone()).collect();
        SetError::UnknownPolicy { name: name.to_string(), policies }
    })
}

fn parse(global: &Global, value: &str) -> Result<i64, SetError> {
    let plain: Option<i64> = value.trim().parse().ok();
    let (name, value) = (global.name.clone(), value.trim().to_string());
    match (global.is_time, plain) {
        (false, Some(number)) | (true, Some(number @ 0)) => Ok(number),
        (false, None) => Err(SetError::NoNumber { name, value }),
        (true, Some(_)) => Err(SetError::NoTime { name, value }),
        (true, None) => text::parse(&value).ok_or(SetError::NoTime { name, value }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::Description;

    fn two() -> Vec<Policy> {
        let text = "scheduler\tedf\tedf.sched\nglobal\tmargin\tmargin\ttunable\ttime\nscheduler\tfair\tfair.sched\n\
                    global\tperiod\tothers_period\ttunable\ttime\nglobal\tmargin\tothers_margin\ttunable\tint\n\
                    global\tRQ_size\tothers_RQ_size\tdata\tint\n";
        Description::read(text).unwrap().policies
    }

    fn c_name(name: &str) -> Result<String, String> {
        find(&two(), name).map(|global| global.c_name.clone()).map_err(|error| error.to_string())
    }

    #[test]
    fn names_mean_the_commands_policy_first() {
        assert_eq!(c_name("margin").unwrap(), "margin");
        assert_eq!(c_name("period").unwrap(), "others_period");
        assert_eq!(c_name("fair.margin").unwrap(), "others_margin");
        assert_eq!(c_name("others.margin").unwrap(), "others_margin");
        assert_eq!(c_name("edf.period").unwrap_err(), "there is no tunable `period` in edf; there is margin");
        assert_eq!(
            c_name("RQ_size").unwrap_err(),
            "there is no tunable `RQ_size` in edf and fair; there is margin, period, margin"
        );
        assert_eq!(
            c_name("pth.period").unwrap_err(),
            "no scheduler here is called `pth`: there is edf and fair"
        );
        let same: Vec<Policy> = [&two()[0], &two()[0]].into_iter().cloned().collect();
        assert!(matches!(find(&same, "edf.margin"), Err(SetError::Ambiguous(_))));
        assert!(find(&same, "others.margin").is_ok());
    }

    #[test]
    fn times_have_units_and_numbers_have_none() {
        let policies = two();
        let value =
            |name, value| parse(find(&policies, name).unwrap(), value).map_err(|error| error.to_string());
        assert_eq!(value("period", "3ms"), Ok(3_000_000));
        assert_eq!(value("period", "0"), Ok(0));
        assert!(value("period", "3").unwrap_err().contains("`3` is no value for period, which is a time"));
        assert!(value("period", "soon").is_err());
        assert_eq!(value("fair.margin", "-3"), Ok(-3));
        assert!(value("fair.margin", "3ms").unwrap_err().contains("without a unit"));
    }
}
