//! Processes that compute in cgroups: how the scheduler shares the CPUs between them by
//! `cpu.weight`, and whether it keeps to `cpu.max`. Needs root and a cgroup2 whose root may be
//! divided.
//!
//! What each should have had follows from the weights alone, so there must be enough processes in
//! each cgroup for all of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{clock, hogs};

const ROOT: &str = "/sys/fs/cgroup";
/// Short: what a measured time holds is uncertain by what is used in one of them.
const PERIOD_US: u64 = 20_000;

/// A cgroup with processes: `a/x=100:3` or, with per cent of a CPU that it may use, `b=100:3:20`.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    path: String,
    weight: u32,
    count: usize,
    quota: Option<f64>,
}

impl FromStr for Group {
    type Err = String;

    fn from_str(text: &str) -> Result<Group, String> {
        let parsed = || {
            let (path, rest) = text.split_once('=')?;
            let mut parts = rest.split(':');
            let weight =
                parts.next()?.parse().ok().filter(|weight| (1..=10_000).contains(weight))?;
            let count = parts.next()?.parse().ok()?;
            let quota = match parts.next() {
                Some(per_cent) => Some(per_cent.parse::<f64>().ok().filter(|it| *it > 0.0)?),
                None => None,
            };
            let plain = |part: &str| !part.is_empty() && !part.contains('.');
            let is_path = path.split('/').all(plain) && parts.next().is_none();
            is_path.then(|| Group { path: path.to_owned(), weight, count, quota })
        };
        parsed().ok_or_else(|| "PATH=WEIGHT:PROCESSES[:PERCENT], such as a/x=100:3".to_owned())
    }
}

/// Folders of cgroups that this workload has made; they go with it.
#[derive(Default)]
pub struct Made(Vec<PathBuf>);

impl Made {
    /// The cgroup and those above it, each with that controller.
    pub fn cgroup(&mut self, path: &str, controller: &str) -> Result<PathBuf> {
        let mut folder = PathBuf::from(ROOT);
        for part in path.split('/') {
            write(&folder.join("cgroup.subtree_control"), &format!("+{controller}"))?;
            folder.push(part);
            if !folder.is_dir() {
                fs::create_dir(&folder).with_context(|| format!("cannot make {folder:?}"))?;
                self.0.push(folder.clone());
            }
        }
        Ok(folder)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for folder in self.0.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

pub fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {text} to {}", file.display()))
}

/// Puts a process there; 0 is this one.
pub fn enter(folder: &Path, pid: u32) -> Result<()> {
    write(&folder.join("cgroup.procs"), &pid.to_string())
}

/// Lets them run a second to find their balance, and measures CPU time over `time`.
pub fn run(groups: &[Group], time: Duration) -> Result<Value> {
    let mut made = Made::default();
    let mut children = Vec::new();
    for group in groups {
        let folder = made.cgroup(&group.path, "cpu")?;
        write(&folder.join("cpu.weight"), &group.weight.to_string())?;
        if let Some(per_cent) = group.quota {
            let quota = (per_cent / 100.0 * PERIOD_US as f64).round();
            write(&folder.join("cpu.max"), &format!("{quota} {PERIOD_US}"))?;
        }
        let hogs = (0..group.count).map(|_| {
            let hog = hogs::start(0)?;
            enter(&folder, hog.pid())?;
            Ok(hog)
        });
        children.push(hogs.collect::<Result<Vec<_>>>()?);
    }
    let used = || -> Result<Vec<u64>> {
        let of = |hogs: &Vec<_>| -> Result<u64> {
            let mut all = 0;
            for hog in hogs {
                all += clock::cpu_time(crate::child::Child::pid(hog))?;
            }
            Ok(all)
        };
        children.iter().map(of).collect()
    };
    let begin = clock::now() + 1_000_000_000;
    clock::sleep_until(begin);
    let before = used()?;
    clock::sleep_until(begin + time.as_nanos() as u64);
    let got: Vec<u64> = used()?.iter().zip(&before).map(|(then, before)| then - before).collect();
    drop(children);
    figures(groups, &got, time)
}

fn figures(groups: &[Group], got: &[u64], time: Duration) -> Result<Value> {
    let measured = groups.iter().zip(got).zip(shares(groups));
    let free: Vec<_> = measured.clone().filter(|((group, _), _)| group.quota.is_none()).collect();
    let all: u64 = free.iter().map(|((_, got), _)| **got).sum();
    let share: f64 = free.iter().map(|(_, share)| share).sum();
    ensure!(!free.is_empty() && all > 0, "some cgroup must be without a quota, and run");
    let off = |got: u64, due: f64| (got as f64 / due - 1.0).abs();
    let by_weight = free.iter().map(|((_, got), own)| off(**got, all as f64 * own / share));
    let by_quota = measured.filter_map(|((group, got), _)| {
        Some(off(*got, group.quota? / 100.0 * time.as_nanos() as f64))
    });
    Ok(json!({
        "cpu_ns": got,
        "worst_deviation": by_weight.fold(0.0, f64::max),
        "quota_deviation": by_quota.fold(0.0, f64::max),
    }))
}

/// Each cgroup's part of the machine: a cgroup's part is shared by those in it.
fn shares(groups: &[Group]) -> Vec<f64> {
    let weight_of = |path: &str| {
        let named = groups.iter().find(|group| group.path == path);
        f64::from(named.map_or(100, |group| group.weight))
    };
    let above = |path: &str| path.rsplit_once('/').map_or(String::new(), |(up, _)| up.to_owned());
    let mut active: Vec<String> = Vec::new();
    for group in groups.iter().filter(|group| group.count > 0) {
        let mut path = group.path.clone();
        while !path.is_empty() {
            if !active.contains(&path) {
                active.push(path.clone());
            }
            path = above(&path);
        }
    }
    let share = |group: &Group| {
        let (mut path, mut share) = (group.path.clone(), 1.0);
        while !path.is_empty() {
            let siblings = active.iter().filter(|other| above(other) == above(&path));
            let all: f64 = siblings.map(|other| weight_of(other)).sum();
            share *= weight_of(&path) / all;
            path = above(&path);
        }
        if group.count > 0 { share } else { 0.0 }
    };
    groups.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(texts: &[&str]) -> Vec<Group> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_part_is_shared_by_those_in_it() {
        let nested = groups(&["a=300:0", "b=100:3", "a/x=100:3", "a/y=200:3"]);
        assert_eq!(shares(&nested), [0.0, 0.25, 0.25, 0.5]);
    }

    #[test]
    fn an_idle_cgroup_has_no_part() {
        assert_eq!(shares(&groups(&["a=100:1", "b=1000:0"])), [1.0, 0.0]);
    }

    #[test]
    fn deviations_are_of_what_was_due() {
        let limited = groups(&["a=100:1", "b=1000:1", "c=100:1:20"]);
        let time = Duration::from_millis(1);
        let exact = figures(&limited, &[70_000, 700_000, 200_000], time).unwrap();
        assert_eq!(exact["quota_deviation"], 0.0);
        assert!(exact["worst_deviation"].as_f64().unwrap() < 1e-9, "{exact}");
        let off = figures(&limited, &[140_000, 630_000, 210_000], time).unwrap();
        assert!((off["quota_deviation"].as_f64().unwrap() - 0.05).abs() < 1e-9, "{off}");
        assert!((off["worst_deviation"].as_f64().unwrap() - 1.0).abs() < 1e-9, "{off}");
    }

    #[test]
    fn what_names_no_cgroup_is_refused() {
        for wrong in ["a", "a=100", "a=0:1", "../a=100:1", "/a=100:1", "a=100:1:0", "a=1:1:1:1"] {
            assert!(wrong.parse::<Group>().is_err(), "{wrong}");
        }
    }
}
