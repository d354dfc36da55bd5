//! What was set while the service's policy ran, for its next start: `settings.json` in the state
//! folder. It is gone when the machine restarts, and means nothing once the configuration says
//! something else.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files;

/// Settings in the order in which they were made; a name stands there once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// The configuration's words: see [`super::Policy::words`].
    words: Vec<String>,
    pub settings: Vec<(String, String)>,
}

fn file(folder: &Path) -> PathBuf {
    folder.join("settings.json")
}

impl Kept {
    /// What was set under this configuration.
    pub fn read(folder: &Path, words: &[String]) -> Kept {
        let kept = files::read(&file(folder)).filter(|kept: &Kept| kept.words == words);
        kept.unwrap_or_else(|| Kept { words: words.to_vec(), settings: Vec::new() })
    }

    /// Notes what has been set just now.
    pub fn add(&mut self, folder: &Path, settings: &[(String, String)]) -> io::Result<()> {
        for setting in settings {
            self.settings.retain(|(name, _)| *name != setting.0);
            self.settings.push(setting.clone());
        }
        files::write(&file(folder), self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn the_last_of_two_settings_of_a_name_comes_last() {
        let folder = tempfile::tempdir().unwrap();
        let words = ["run".to_owned()];
        let mut kept = Kept::read(folder.path(), &words);
        kept.add(folder.path(), &[setting("period", "1ms"), setting("slack", "2")]).unwrap();
        kept.add(folder.path(), &[setting("period", "3ms")]).unwrap();
        let again = Kept::read(folder.path(), &words);
        assert_eq!(again.settings, [setting("slack", "2"), setting("period", "3ms")]);
    }

    #[test]
    fn another_configuration_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let mut kept = Kept::read(folder.path(), &["run".to_owned()]);
        kept.add(folder.path(), &[setting("period", "1ms")]).unwrap();
        assert_eq!(Kept::read(folder.path(), &["walk".to_owned()]).settings, []);
    }
}
