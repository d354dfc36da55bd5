//! Finds the workloads of `lab/workloads` by their names; they are built into the program.

use std::path::Path;

macro_rules! workloads {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../workloads/", $name)))),*]
    };
}

/// File names and texts.
pub const WORKLOADS: &[(&str, &str)] = workloads![
    "coop_players.toml",
    "desktop.toml",
    "forks.toml",
    "hogs.toml",
    "locks.toml",
    "periodic.toml",
    "players.toml",
    "reserved.toml",
    "rt_app.json",
    "transactions.toml",
    "weather.toml",
    "webserver.toml",
    "webserver_closed.toml",
];

/// The file name and text of a workload such as `players` or `players.toml`.
pub fn find(name: &Path) -> Option<(&'static str, &'static str)> {
    let stem = |file: &str| Path::new(file).file_stem() == Some(name.as_os_str());
    WORKLOADS.iter().copied().find(|(file, _)| Path::new(file) == name || stem(file))
}

/// Their names without the file's ending.
pub fn names() -> Vec<&'static str> {
    WORKLOADS.iter().filter_map(|(file, _)| file.split('.').next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_built_in_and_found_by_both_names() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/workloads");
        let files = std::fs::read_dir(folder).unwrap().count();
        assert_eq!(files, WORKLOADS.len());
        for (file, text) in WORKLOADS {
            let stem = Path::new(file).file_stem().unwrap();
            assert_eq!(find(Path::new(file)), Some((*file, *text)));
            assert_eq!(find(Path::new(stem)), Some((*file, *text)));
        }
        assert_eq!(find(Path::new("no_such")), None);
    }
}
