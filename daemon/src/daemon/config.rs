//! Reads the daemon's configuration: a small TOML file. A user may leave out every word of it.
//!
//! ```toml
//! bound = 0.8              # share of each CPU that may be given
//! user_bound = 0.4         # share of each CPU for the programs on one user's account
//! controller = "ours"      # or "lfs++", "lfs"
//! display = ":0"           # the display server of it gets a share of its own
//! display_weight = 1.0
//! socket = "/run/attune/attuned.sock"
//!
//! [[program]]
//! path = "/usr/bin/mplayer"
//! user = "anna"            # or a number; without it, each user who runs it
//! weight = 2.0             # its part when there is not enough for all
//!
//! [policy]                 # see policy/config.rs
//! scheduler = "fair"
//! ```

use std::path::PathBuf;

use attune_rhythm::controller::Law;
use serde::{Deserialize, Deserializer};

use crate::policy::Policy;
use crate::{Account, Target};

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub bound: f64,
    /// [`crate::Options::user_bound`].
    pub user_bound: f64,
    #[serde(rename = "controller", deserialize_with = "law")]
    pub law: Law,
    pub display: Option<String>,
    pub display_weight: f64,
    pub socket: Option<PathBuf>,
    #[serde(rename = "program")]
    pub programs: Vec<Listed>,
    /// What schedules this machine.
    pub policy: Option<Policy>,
}

/// A program that is tuned whenever it runs. It is known by its file and its user, which no other
/// program can take on.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Listed {
    pub path: PathBuf,
    /// None: every user's.
    #[serde(default, deserialize_with = "user")]
    pub user: Option<u32>,
    #[serde(default = "one")]
    pub weight: f64,
}

impl Listed {
    pub fn is(&self, target: &Target) -> bool {
        self.user.is_none_or(|user| user == target.user) && target.runs(&self.path)
    }

    /// The administrator means it for the user that is named; any other user has it on their own.
    pub fn account(&self, user: u32) -> Account {
        match self.user.is_some() || user == 0 {
            true => Account::Machine,
            false => Account::User(user),
        }
    }
}

/// A user's number, or the name of one that this machine knows.
fn user<'de, D: Deserializer<'de>>(input: D) -> Result<Option<u32>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum User {
        Number(u32),
        Name(String),
    }
    let name = match User::deserialize(input)? {
        User::Number(number) => return Ok(Some(number)),
        User::Name(name) => name,
    };
    match nix::unistd::User::from_name(&name) {
        Ok(Some(known)) => Ok(Some(known.uid.as_raw())),
        Ok(None) => Err(serde::de::Error::custom(format!("this machine has no user {name}"))),
        Err(error) => {
            Err(serde::de::Error::custom(format!("cannot look up the user {name}: {error}")))
        }
    }
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
            user_bound: crate::USER_BOUND,
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
        for (word, bound) in [("bound", config.bound), ("user_bound", config.user_bound)] {
            if !(bound > 0.0 && bound <= 1.0) {
                return Err(format!(
                    "{word} = {bound}: it is a share of each CPU, above 0 and at most 1"
                ));
            }
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
        let text = "bound = 0.5\nuser_bound = 0.2\ncontroller = \"lfs++\"\ndisplay = \":0\"\n\
            [[program]]\npath = \"/usr/bin/mplayer\"\nuser = \"root\"\nweight = 2.0\n\
            [[program]]\npath = \"/usr/bin/sox\"\n[[program]]\npath = \"/a\"\nuser = 7\n";
        let config = Config::parse(text).unwrap();
        assert_eq!((config.bound, config.user_bound), (0.5, 0.2));
        assert_eq!(config.law, Law::LfsPlusPlus);
        let path = PathBuf::from("/usr/bin/mplayer");
        assert_eq!(config.programs[0], Listed { path, user: Some(0), weight: 2.0 });
        assert_eq!((config.programs[1].weight, config.programs[1].user), (1.0, None));
        assert_eq!(config.programs[2].user, Some(7));
        assert_eq!(config.programs[1].account(7), Account::User(7));
        assert_eq!(config.programs[2].account(7), Account::Machine);
    }

    #[test]
    fn mistakes_are_named() {
        assert!(Config::parse("bund = 0.5").unwrap_err().contains("bund"));
        assert!(Config::parse("bound = 2.0").unwrap_err().contains("at most 1"));
        assert!(Config::parse("[policy]\nschedule = \"fair\"").unwrap_err().contains("schedule"));
        assert!(Config::parse("controller = \"magic\"").unwrap_err().contains("lfs++"));
        assert!(
            Config::parse("[[program]]\npath = \"x\"\nweight = 0.0")
                .unwrap_err()
                .contains("above 0")
        );
        assert!(Config::parse("user_bound = 0").unwrap_err().contains("user_bound"));
        let unknown = Config::parse("[[program]]\npath = \"x\"\nuser = \"no such user\"");
        assert!(unknown.unwrap_err().contains("no user no such user"));
        // A name is what any program can call itself.
        assert!(Config::parse("[[program]]\nname = \"x\"").unwrap_err().contains("path"));
    }
}
