//! Reads the daemon's configuration: a small TOML file. A user may leave out every word of it.
//!
//! ```toml
//! bound = 0.8              # share of each CPU that may be given
//! controller = "ours"      # or "lfs++", "lfs"
//! display = ":0"           # the display server of it gets a share of its own
//! display_weight = 1.0
//! socket = "/run/attune/attuned.sock"
//!
//! [[program]]
//! name = "mplayer"         # as ps -o comm tells it
//! weight = 2.0             # its part when there is not enough for all
//!
//! [policy]                 # see policy/config.rs
//! scheduler = "fair"
//! ```

use std::path::PathBuf;

use attune_rhythm::controller::Law;
use serde::{Deserialize, Deserializer};

use crate::policy::Policy;

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub bound: f64,
    #[serde(rename = "controller", deserialize_with = "law")]
    pub law: Law,
    pub display: Option<String>,
    pub display_weight: f64,
    pub socket: Option<PathBuf>,
    #[serde(rename = "program")]
    pub programs: Vec<Named>,
    /// What schedules this machine.
    pub policy: Option<Policy>,
}

/// A program that is tuned whenever it runs.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Named {
    pub name: String,
    #[serde(default = "one")]
    pub weight: f64,
}

fn one() -> f64 {
    1.0
}

fn law<'de, D: Deserializer<'de>>(input: D) -> Result<Law, D::Error> {
    String::deserialize(input)?.parse().map_err(serde::de::Error::custom)
}

impl Default for Config {
    fn default() -> Self {
        Config {
            bound: 0.9,
            law: Law::default(),
            display: None,
            display_weight: 1.0,
            socket: None,
            programs: Vec::new(),
            policy: None,
        }
    }
}

impl Config {
    /// Err: what is wrong and where, for a person.
    pub fn parse(text: &str) -> Result<Config, String> {
        let config: Config = toml::from_str(text).map_err(|error| error.to_string())?;
        if !(config.bound > 0.0 && config.bound <= 1.0) {
            return Err(format!(
                "bound = {}: it is a share of each CPU, above 0 and at most 1",
                config.bound
            ));
        }
        config.policy.as_ref().map_or(Ok(()), Policy::check)?;
        let weights =
            config.programs.iter().map(|program| program.weight).chain([config.display_weight]);
        match weights.into_iter().find(|weight| !(weight.is_finite() && *weight > 0.0)) {
            Some(weight) => Err(format!("weight = {weight}: a weight is above 0")),
            None => Ok(config),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_a_configuration() {
        assert_eq!(Config::parse(""), Ok(Config::default()));
    }

    #[test]
    fn all_words_are_read() {
        let text = "bound = 0.5\ncontroller = \"lfs++\"\ndisplay = \":0\"\n[[program]]\nname \
            = \"mplayer\"\nweight = 2.0\n[[program]]\nname = \"sox\"\n";
        let config = Config::parse(text).unwrap();
        assert_eq!((config.bound, config.law), (0.5, Law::LfsPlusPlus));
        assert_eq!(config.programs[0], Named { name: "mplayer".to_owned(), weight: 2.0 });
        assert_eq!(config.programs[1].weight, 1.0);
    }

    #[test]
    fn mistakes_are_named() {
        assert!(Config::parse("bund = 0.5").unwrap_err().contains("bund"));
        assert!(Config::parse("bound = 2.0").unwrap_err().contains("at most 1"));
        assert!(Config::parse("[policy]\nschedule = \"fair\"").unwrap_err().contains("schedule"));
        assert!(Config::parse("controller = \"magic\"").unwrap_err().contains("lfs++"));
        assert!(
            Config::parse("[[program]]\nname = \"x\"\nweight = 0.0")
                .unwrap_err()
                .contains("above 0")
        );
    }
}
