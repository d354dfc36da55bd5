//! The standard library of schedulers, and finding a scheduler's files.
//!
//! The policies themselves are the `.sched` files beside this crate's manifest; they are built into
//! every program that uses them, so that `extends fifo` works without an installation.

mod files;

pub use files::{FileLoader, Opened, open, read_text};

/// One scheduler of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: &'static str,
    pub text: &'static str,
}

macro_rules! entries {
    ($($name:literal),* $(,)?) => {
        &[$(Entry { name: $name, text: include_str!(concat!("../", $name, ".sched")) }),*]
    };
}

/// The library, in the order in which one would read it.
pub const LIBRARY: &[Entry] = entries![
    "lifecycle",
    "lineage",
    "herd",
    "fifo",
    "round_robin",
    "pth",
    "priority",
    "lottery",
    "fair",
    "fair_periodic",
    "edf",
    "coop",
    "reserve",
    "human",
    "desktop",
    "unix_decay",
    "linux_epochs",
    "solaris_ts",
    "nt_boosts",
    "shortest_reply",
    "transactions",
    "lock_counts",
    "weather",
];

/// The library's scheduler of that name.
pub fn find(name: &str) -> Option<Entry> {
    LIBRARY.iter().copied().find(|entry| entry.name == name)
}

impl Entry {
    /// Whether it is only a base for others.
    pub fn is_partial(&self) -> bool {
        self.text.contains("\npartial scheduler ")
    }

    /// The first line of the header: what it is, in a few words.
    pub fn summary(&self) -> &'static str {
        let first = self.text.lines().next().unwrap_or_default();
        first.trim_start_matches("/*").trim().trim_end_matches("*/").trim()
    }

    /// A field of the header (`Problem`, `Idea`, `Gain`, `Cost`), its lines joined.
    pub fn field(&self, name: &str) -> Option<String> {
        let header = self.text.split("*/").next()?;
        let mut lines = header.lines().map(|line| line.trim_start_matches([' ', '*', '/']));
        let first = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        let rest = header
            .lines()
            .skip_while(|line| !line.trim_start_matches([' ', '*', '/']).starts_with(name))
            .skip(1)
            .take_while(|line| line.starts_with(" *   "))
            .map(|line| line.trim_start_matches([' ', '*']).trim());
        Some(std::iter::once(first.trim()).chain(rest).collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_in_the_library_and_says_what_it_is_for() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/");
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .filter_map(|file| {
                file.unwrap().file_name().to_str().unwrap().strip_suffix(".sched").map(String::from)
            })
            .collect();
        names.sort();
        let mut listed: Vec<&str> = LIBRARY.iter().map(|entry| entry.name).collect();
        listed.sort();
        assert_eq!(names, listed);
        for entry in LIBRARY {
            assert!(entry.summary().ends_with('.'), "{}: {}", entry.name, entry.summary());
            // How long a ready thread may wait; a base chooses none.
            let bound = (!entry.is_partial()).then_some("Bound");
            for field in ["Problem", "Idea", "Gain", "Cost"].into_iter().chain(bound) {
                let text = entry.field(field).unwrap_or_default();
                assert!(
                    text.len() > 20 && text.ends_with(['.', ')']),
                    "{}: {field}: {text:?}",
                    entry.name
                );
            }
        }
    }
}
