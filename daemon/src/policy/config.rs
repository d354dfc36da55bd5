//! The table `[policy]` of the daemon's configuration: what `attune run` is told at boot.
//!
//! ```toml
//! [policy]
//! scheduler = "fair"        # of the library, or a file; relative to the configuration's folder
//! partial = false           # only threads of class SCHED_EXT follow it
//! per = "cache"             # one instance for each: "machine", "cache" or "cpu"
//! timeout_ms = 5000
//! strict = false
//! implicit = false
//! include = ["schedulers"]  # folders of base schedulers
//! aspects = []
//!
//! [policy.set]              # tunables and global imports
//! period = "10ms"
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer};

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    pub scheduler: PathBuf,
    #[serde(default)]
    pub partial: bool,
    pub per: Option<Per>,
    pub timeout_ms: Option<u32>,
    #[serde(default)]
    pub strict: bool,
    #[serde(default)]
    pub implicit: bool,
    #[serde(default)]
    pub include: Vec<PathBuf>,
    #[serde(default)]
    pub aspects: Vec<PathBuf>,
    #[serde(default, deserialize_with = "settings")]
    pub set: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    Machine,
    Cache,
    Cpu,
}

impl Per {
    fn word(self) -> &'static str {
        match self {
            Per::Machine => "machine",
            Per::Cache => "cache",
            Per::Cpu => "cpu",
        }
    }
}

/// A time is a text, `"10ms"`; a number may be either.
fn settings<'de, D: Deserializer<'de>>(input: D) -> Result<BTreeMap<String, String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a value is a text such as \"10ms\", or a whole number")]
    enum Value {
        Number(i64),
        Text(String),
    }
    let values = BTreeMap::<String, Value>::deserialize(input)?;
    let text = |value| match value {
        Value::Number(number) => number.to_string(),
        Value::Text(text) => text,
    };
    Ok(values.into_iter().map(|(name, value)| (name, text(value))).collect())
}

impl Policy {
    /// Err: what is wrong, for a person.
    pub fn check(&self) -> Result<(), String> {
        match self.timeout_ms {
            Some(timeout) if !(100..=30_000).contains(&timeout) => {
                Err(format!("policy.timeout_ms = {timeout}: it is from 100 to 30000"))
            }
            _ => Ok(()),
        }
    }

    /// The words of `attune`. Two policies with the same words are the same.
    pub fn words(&self) -> Vec<String> {
        let mut words = vec!["run".to_owned(), "--service".to_owned()];
        words.push(if self.partial { "--partial" } else { "--all" }.to_owned());
        let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
        if let Some(per) = self.per {
            add("--per", per.word().to_owned());
        }
        if let Some(timeout) = self.timeout_ms {
            add("--timeout", timeout.to_string());
        }
        for folder in &self.include {
            add("-I", folder.display().to_string());
        }
        for file in &self.aspects {
            add("--aspect", file.display().to_string());
        }
        for (name, value) in &self.set {
            add("--set", format!("{name}={value}"));
        }
        for (option, given) in [("--strict", self.strict), ("--implicit", self.implicit)] {
            words.extend(given.then(|| option.to_owned()));
        }
        words.push(self.scheduler.display().to_string());
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_what_attune_run_is_told() {
        let text = "scheduler = \"my.sched\"\nper = \"cpu\"\ntimeout_ms = 900\nstrict = true\n\
            include = [\"common\"]\n[set]\nperiod = \"10ms\"\nlevel = 3\n";
        let policy: Policy = toml::from_str(text).unwrap();
        assert_eq!(
            policy.words().join(" "),
            "run --service --all --per cpu --timeout 900 -I common --set level=3 --set \
             period=10ms --strict my.sched"
        );
        let partial: Policy = toml::from_str("scheduler = \"fair\"\npartial = true").unwrap();
        assert_eq!(partial.words().join(" "), "run --service --partial fair");
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| toml::from_str::<Policy>(text).unwrap_err().to_string();
        assert!(error("").contains("scheduler"));
        assert!(error("scheduler = \"fair\"\nall = true").contains("all"));
        assert!(error("scheduler = \"fair\"\nper = \"socket\"").contains("cache"));
        assert!(error("scheduler = \"fair\"\n[set]\nperiod = 0.5").contains("whole number"));
        let late: Policy = toml::from_str("scheduler = \"fair\"\ntimeout_ms = 50000").unwrap();
        assert!(late.check().unwrap_err().contains("from 100 to 30000"));
    }
}
