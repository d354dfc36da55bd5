//! Changes a running scheduler: sets its tunables and its global imports.

use attune_values::text::{self, Unsuitable};
use attune_values::wire::{self, Tunable};

use crate::description::{Global, Policy, Storage, wire_type};
use crate::image::Image;
use crate::memory::{Memory, Words};

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SetError {
    #[error("there is no tunable `{name}` in {of}; {}", known(.tunables))]
    Unknown { of: String, name: String, tunables: Vec<String> },
    #[error("no scheduler here is called `{name}`: there is {}", .policies.join(" and "))]
    UnknownPolicy { name: String, policies: Vec<String> },
    #[error("several schedulers are called {name}: say {}", .roles.join(" or "))]
    Ambiguous { name: String, roles: Vec<String> },
    #[error(transparent)]
    Unsuitable(#[from] Unsuitable),
    #[error("nothing was set: {0}")]
    Unable(String),
}

fn known(tunables: &[String]) -> String {
    match tunables {
        [] => "there is none at all".to_string(),
        names => format!("there is {}", names.join(", ")),
    }
}

/// Each name is a tunable's, or a scheduler's and a tunable's: `fair.period`. Where several
/// schedulers share the machine and none is said, it is the first's that has one of this name; they
/// are also called by their [`role`]. The value of a time has a unit. These are the words to be
/// stored, and where: one in each instance.
pub(crate) fn words(
    image: &Image,
    memory: &Memory,
    settings: &[(String, String)],
) -> Result<Vec<(u64, u64)>, SetError> {
    let mut words = Vec::new();
    for (name, value) in settings {
        let global = find(&image.description.policies, name)?;
        let number = parse(global, value)?;
        let places = (0..image.instances()).filter_map(|it| place(image, memory, it, global));
        words.extend(places.map(|at| (at, number as u64)));
    }
    Ok(words)
}

/// Where its value is in an instance. None in an object that lacks it.
fn place(image: &Image, memory: &Memory, instance: u32, global: &Global) -> Option<u64> {
    Some(memory.in_state(image, instance, &global.c_name)? + global.offset())
}

/// What the `index`th of so many schedulers is also called, whatever its name: `command`,
/// `command2` and so on, the last one `others`. None if it is the only one.
pub fn role(index: usize, count: usize) -> Option<String> {
    match index {
        _ if count < 2 => None,
        _ if index + 1 == count => Some("others".to_owned()),
        0 => Some("command".to_owned()),
        _ => Some(format!("command{}", index + 1)),
    }
}

/// All that can be set, and what it is now.
pub(crate) fn all(image: &Image, memory: &Memory) -> Vec<Tunable> {
    let policies = &image.description.policies;
    let all = policies.iter().enumerate().flat_map(|(index, policy)| {
        policy
            .globals
            .iter()
            .filter(|global| global.is_settable())
            .map(move |global| (index, policy, global))
    });
    all.map(|(index, policy, global)| Tunable {
        scheduler: policy.name.clone(),
        role: role(index, policies.len()),
        name: global.name.clone(),
        storage: match global.storage {
            Storage::Import => wire::Storage::Import,
            _ => wire::Storage::Tunable,
        },
        ty: wire_type(global.is_time),
        value: place(image, memory, 0, global).and_then(|at| memory.u64(at)).unwrap_or(0) as i64,
    })
    .collect()
}

/// All that can be set, as it is now: bytes from the start of an instance's state, and the value.
pub(crate) fn settings(image: &Image, memory: &Memory) -> Option<Vec<(u64, u64)>> {
    let state = memory.instance(image, 0)?;
    let globals = image.description.policies.iter().flat_map(|policy| &policy.globals);
    let places = globals.filter(|global| global.is_settable()).filter_map(|global| {
        let at = place(image, memory, 0, global)?;
        Some((at - state, memory.u64(at)?))
    });
    Some(places.collect())
}

fn find<'a>(policies: &'a [Policy], name: &str) -> Result<&'a Global, SetError> {
    let (among, name): (Vec<&Policy>, &str) = match name.split_once('.') {
        None => (policies.iter().collect(), name),
        Some((policy, name)) => (vec![called(policies, policy)?], name),
    };
    let settable =
        |policy: &&'a Policy| policy.globals.iter().filter(|global| global.is_settable());
    let found = among.iter().flat_map(settable).find(|global| global.name == name);
    found.ok_or_else(|| {
        let of: Vec<String> = among.iter().map(|policy| policy.name.clone()).collect();
        // With several schedulers a bare name could be any's.
        let shown = |policy: &&'a Policy| {
            let prefix = if among.len() > 1 { format!("{}.", policy.name) } else { String::new() };
            settable(policy).map(move |global| prefix.clone() + &global.name).collect::<Vec<_>>()
        };
        let tunables = among.iter().flat_map(shown).collect();
        SetError::Unknown { of: of.join(" and "), name: name.to_string(), tunables }
    })
}

fn called<'a>(policies: &'a [Policy], name: &str) -> Result<&'a Policy, SetError> {
    let role = |index| role(index, policies.len());
    let named: Vec<usize> =
        (0..policies.len()).filter(|index| policies[*index].name == name).collect();
    match named.as_slice() {
        [] => {}
        [only] => return Ok(&policies[*only]),
        all => {
            let of = |index: &usize| Some(format!("`{}.NAME`", role(*index)?));
            let roles = all.iter().filter_map(of).collect();
            return Err(SetError::Ambiguous { name: name.to_owned(), roles });
        }
    }
    let meant = (0..policies.len()).find(|index| role(*index).as_deref() == Some(name));
    meant.and_then(|index| policies.get(index)).ok_or_else(|| {
        let policies = policies.iter().map(|policy| policy.name.clone()).collect();
        SetError::UnknownPolicy { name: name.to_string(), policies }
    })
}

fn parse(global: &Global, value: &str) -> Result<i64, Unsuitable> {
    text::setting(&global.name, wire_type(global.is_time), value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::Description;

    fn two() -> Vec<Policy> {
        let text = r#"{"scheduler":{"name":"edf","file":"edf.sched"}}
{"global":{"name":"margin","c_name":"margin","storage":"tunable","is_time":true}}
{"scheduler":{"name":"fair","file":"fair.sched"}}
{"global":{"name":"period","c_name":"others_period","storage":"tunable","is_time":true}}
{"global":{"name":"margin","c_name":"others_margin","storage":"tunable","is_time":false}}
{"global":{"name":"RQ_size","c_name":"others_RQ_size","storage":"data","is_time":false}}
"#;
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
        assert_eq!(
            c_name("edf.period").unwrap_err(),
            "there is no tunable `period` in edf; there is margin"
        );
        assert_eq!(
            c_name("RQ_size").unwrap_err(),
            "there is no tunable `RQ_size` in edf and fair; there is edf.margin, fair.period, \
             fair.margin"
        );
        assert_eq!(
            c_name("pth.period").unwrap_err(),
            "no scheduler here is called `pth`: there is edf and fair"
        );
        let same: Vec<Policy> = [&two()[0], &two()[0]].into_iter().cloned().collect();
        assert_eq!(
            find(&same, "edf.margin").map(|_| ()).unwrap_err().to_string(),
            "several schedulers are called edf: say `command.NAME` or `others.NAME`"
        );
        assert!(find(&same, "others.margin").is_ok());
    }

    #[test]
    fn several_commands_are_called_in_their_order() {
        let (edf, fair) = (two().remove(0), two().remove(1));
        let policies = [edf.clone(), fair.clone(), edf, fair];
        let meant = |name: &str| {
            let found = called(&policies, name).map_err(|error| error.to_string());
            found.map(|it| policies.iter().position(|policy| std::ptr::eq(it, policy)).unwrap())
        };
        assert_eq!(meant("command"), Ok(0));
        assert_eq!(meant("command2"), Ok(1));
        assert_eq!(meant("command3"), Ok(2));
        assert_eq!(meant("others"), Ok(3));
        assert!(meant("command4").unwrap_err().contains("is called `command4`"));
        assert_eq!(
            meant("fair").unwrap_err(),
            "several schedulers are called fair: say `command2.NAME` or `others.NAME`"
        );
        assert_eq!(role(0, 1), None);
    }

    #[test]
    fn times_have_units_and_numbers_have_none() {
        let policies = two();
        let value = |name, value| {
            parse(find(&policies, name).unwrap(), value).map_err(|error| error.to_string())
        };
        assert_eq!(value("period", "3ms"), Ok(3_000_000));
        assert_eq!(value("period", "0"), Ok(0));
        assert!(
            value("period", "3")
                .unwrap_err()
                .contains("`3` is no value for period, which is a time")
        );
        assert!(value("period", "soon").is_err());
        assert_eq!(value("fair.margin", "-3"), Ok(-3));
        assert!(value("fair.margin", "3ms").unwrap_err().contains("without a unit"));
        assert!(value("fair.margin", "0.5").unwrap_err().contains("without a unit"));
        assert!(value("fair.margin", "9223372036854775808").unwrap_err().contains("too large"));
        assert_eq!(value("fair.margin", "9223372036854775807"), Ok(i64::MAX));
        assert!(value("period", "1e10s").unwrap_err().contains("`1e10s` is too large for period"));
        assert!(value("period", "3 apples").unwrap_err().contains("which is a time"));
    }
}
