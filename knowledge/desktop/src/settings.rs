//! What a person may change about ratings. Every setting has a default; the names are the words of
//! `attune focus --set NAME=VALUE`.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The greatest rating, K. An input rating falls by one a second, so input counts for K
    /// seconds.
    pub ceiling: f64,
    /// Parts of the ceiling that one event of a kind gives.
    pub key: f64,
    pub click: f64,
    pub scroll: f64,
    pub motion: f64,
    /// While a window of the client has the focus.
    pub focus: f64,
    /// On Wayland: the display server woke the client that has the focus.
    pub woken: f64,
    /// The part of the screen that a lone program must change all the time for the full output
    /// rating.
    pub full_output: f64,
    /// The part of the ceiling that playing sound gives.
    pub sound: f64,
    /// A process whose ratings are both below this is not rated.
    pub least: f64,
    pub decay: Decay,
    /// An edge below this weight is gone.
    pub least_weight: f64,
    /// An edge weighs at most this, so that a flood of wake-ups does not outlive its cause for
    /// long.
    pub most_weight: f64,
    /// The graph keeps at most so many edges, the heaviest.
    pub most_edges: usize,
    /// Ratings travel over at most so many edges.
    pub reach: usize,
    /// A process that wakes, and is woken by, at least so many others that it did not start is a
    /// hub.
    pub hub_fan: usize,
    /// Names of processes that are hubs whatever they do.
    pub hubs: Vec<String>,
}

/// How an edge loses weight while its processes do not wake each other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decay {
    /// A weight halves each second.
    Halving,
    /// A weight falls by so much a second.
    Linear(f64),
    /// A weight stays for so many seconds after the last wake-up, and then goes at once.
    FixedTime(f64),
}

/// Servers of many clients, by the first 15 bytes of their names as the kernel keeps them.
const HUBS: [&str; 24] = [
    "systemd",
    "dbus-daemon",
    "dbus-broker",
    "dbus-broker-lau",
    "pipewire",
    "pipewire-pulse",
    "wireplumber",
    "pulseaudio",
    "Xorg",
    "Xvfb",
    "Xephyr",
    "Xnest",
    "Xvnc",
    "Xtigervnc",
    "Xwayland",
    "sway",
    "weston",
    "labwc",
    "gnome-shell",
    "kwin_x11",
    "kwin_wayland",
    "xdg-desktop-por",
    "at-spi-bus-laun",
    "at-spi2-registr",
];

impl Default for Settings {
    fn default() -> Self {
        Settings {
            ceiling: 10.0,
            key: 1.0,
            click: 1.0,
            scroll: 0.6,
            motion: 0.2,
            focus: 0.3,
            woken: 0.6,
            full_output: 0.05,
            sound: 0.5,
            least: 0.05,
            decay: Decay::Halving,
            least_weight: 0.25,
            most_weight: 1024.0,
            most_edges: 8192,
            reach: 8,
            hub_fan: 8,
            hubs: HUBS.map(String::from).to_vec(),
        }
    }
}

impl Settings {
    /// Sets one of them from the words of a command line. The error says what is wrong.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let mut all = serde_json::to_value(&*self).map_err(|error| error.to_string())?;
        let Some(place) = all.get_mut(name) else {
            let names = all.as_object().into_iter().flat_map(|all| all.keys());
            let names: Vec<&str> = names.map(String::as_str).collect();
            return Err(format!("there is no setting {name}; there are {}", names.join(", ")));
        };
        *place = match name {
            "hubs" => value.split(',').map(str::trim).collect(),
            "decay" => decay(value)?,
            _ => serde_json::from_str(value)
                .map_err(|_| format!("{name}={value}: {value} is no number"))?,
        };
        let changed: Settings =
            serde_json::from_value(all).map_err(|error| format!("{name}={value}: {error}"))?;
        changed.check().map_err(|what| format!("{name}={value}: {what}"))?;
        *self = changed;
        Ok(())
    }

    /// Changes what a file in TOML says: `ceiling = 5`, `hubs = ["mine"]`. The error says what is
    /// wrong, and nothing has been changed then.
    pub fn read(&mut self, text: &str) -> Result<(), String> {
        let table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        let mut changed = self.clone();
        for (name, value) in &table {
            let value = match value {
                toml::Value::String(text) => text.clone(),
                toml::Value::Array(all) => {
                    let texts = all.iter().map(|one| one.as_str().ok_or("a list holds texts"));
                    texts.collect::<Result<Vec<_>, _>>()?.join(",")
                }
                other => other.to_string(),
            };
            changed.set(name, &value)?;
        }
        *self = changed;
        Ok(())
    }

    fn check(&self) -> Result<(), &'static str> {
        let part = |part: f64| (0.0..=1.0).contains(&part);
        let positive = |number: f64| number > 0.0 && number.is_finite();
        if !(positive(self.ceiling) && self.ceiling <= 3600.0) {
            return Err("a number of seconds above 0, at most 3600");
        }
        let events = [self.key, self.click, self.scroll, self.motion, self.focus, self.woken];
        let mut parts = events.into_iter().chain([self.sound]);
        if !parts.all(part) {
            return Err("a part of the ceiling, from 0 to 1");
        }
        if !(part(self.full_output) && self.full_output > 0.0) {
            return Err("a part of the screen, above 0, at most 1");
        }
        if !(positive(self.least) && self.least < self.ceiling) {
            return Err("above 0 and below the ceiling");
        }
        if !(positive(self.least_weight) && self.least_weight < self.most_weight) {
            return Err("least_weight is above 0 and below most_weight");
        }
        if !self.most_weight.is_finite() || self.most_edges == 0 || self.hub_fan == 0 {
            return Err("a number above 0");
        }
        match self.decay {
            Decay::Linear(per_second) if !positive(per_second) => Err("above 0"),
            Decay::FixedTime(seconds) if !positive(seconds) => Err("above 0"),
            _ => Ok(()),
        }
    }
}

/// `halving`, `linear:2`, `fixed:5`.
fn decay(text: &str) -> Result<serde_json::Value, String> {
    let (name, number) = text.split_once(':').unwrap_or((text, ""));
    let decay = match (name, number.parse::<f64>()) {
        ("halving", _) if number.is_empty() => Decay::Halving,
        ("linear", Ok(per_second)) => Decay::Linear(per_second),
        ("fixed", Ok(seconds)) => Decay::FixedTime(seconds),
        _ => return Err(format!("decay={text}: halving, linear:PER_SECOND or fixed:SECONDS")),
    };
    serde_json::to_value(decay).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_can_be_set_by_its_name() {
        let mut settings = Settings::default();
        for (name, value) in [
            ("ceiling", "5"),
            ("motion", "0"),
            ("decay", "linear:2"),
            ("hub_fan", "3"),
            ("hubs", "dbus-daemon, mine"),
        ] {
            settings.set(name, value).unwrap();
        }
        assert_eq!(settings.ceiling, 5.0);
        assert_eq!(settings.decay, Decay::Linear(2.0));
        assert_eq!(settings.hub_fan, 3);
        assert_eq!(settings.hubs, ["dbus-daemon", "mine"]);
    }

    #[test]
    fn a_file_sets_what_it_names_and_a_wrong_one_nothing() {
        let mut settings = Settings::default();
        let text =
            "# mine\nceiling = 5\nmotion = 0.1\ndecay = \"fixed:3\"\nhubs = [\"a\", \"b\"]\n";
        settings.read(text).unwrap();
        assert_eq!((settings.ceiling, settings.motion), (5.0, 0.1));
        assert_eq!(settings.decay, Decay::FixedTime(3.0));
        assert_eq!(settings.hubs, ["a", "b"]);
        let before = settings.clone();
        for (text, says) in [
            ("ceiling = 7\ncelling = 5", "there is no setting celling"),
            ("ceiling = 7\nkey = true", "expected f64"),
            ("hubs = [1]", "a list holds texts"),
            ("ceiling", "expected"),
            ("[sound]\nceiling = 5", "sound"),
        ] {
            let error = settings.read(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
        assert_eq!(settings, before);
    }

    #[test]
    fn a_wrong_setting_changes_nothing_and_says_what_is_wrong() {
        let mut settings = Settings::default();
        for (name, value, says) in [
            ("celing", "5", "there is no setting celing"),
            ("ceiling", "much", "much is no number"),
            ("ceiling", "-1", "above 0"),
            ("key", "2", "from 0 to 1"),
            ("decay", "linear", "linear:PER_SECOND"),
            ("decay", "fixed:-1", "above 0"),
            ("most_edges", "1.5", "most_edges=1.5"),
        ] {
            let error = settings.set(name, value).unwrap_err();
            assert!(error.contains(says), "{name}={value}: {error}");
        }
        assert_eq!(settings, Settings::default());
    }
}
