//! Finds programs of this machine that experiments need and the project does not build, and tells
//! the words of commands apart.

use std::path::PathBuf;

use anyhow::{Result, bail};

/// Finds a program by the search path.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Words as a shell tells them apart. No text of an experiment leaves a quote open.
pub fn words_of(command: &str) -> Vec<String> {
    shlex::split(command).unwrap_or_default()
}

/// The words as one would type them in a shell. No word of an experiment holds a zero byte.
pub fn typed<'a>(words: impl IntoIterator<Item = &'a String>) -> String {
    shlex::try_join(words.into_iter().map(String::as_str)).unwrap_or_default()
}

/// Where programs keep what they can fetch again: XDG_CACHE_HOME or `~/.cache`.
pub fn cache() -> PathBuf {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || set("HOME").unwrap_or_else(|| PathBuf::from("/")).join(".cache");
    set("XDG_CACHE_HOME").unwrap_or_else(home)
}

/// Where they are. Err: it names all that are missing, and what installs them.
pub fn installed(names: &[&str]) -> Result<Vec<PathBuf>> {
    let missing: Vec<&str> = names.iter().copied().filter(|name| find(name).is_none()).collect();
    if !missing.is_empty() {
        bail!("it needs {}: on Debian `tools/setup.sh players` installs them", missing.join(", "));
    }
    Ok(names.iter().filter_map(|name| find(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_typed_are_told_apart_again() {
        let command = "load --server 'Xvfb :9 -ac' --said \"it's\" --drag=16";
        let words = words_of(command);
        assert_eq!(words[2], "Xvfb :9 -ac");
        assert_eq!(words_of(&typed(&words)), words);
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = installed(&["sh", "no-such-player", "no-such-server"]).unwrap_err().to_string();
        assert!(
            error.contains("no-such-player, no-such-server")
                && error.contains("tools/setup.sh players")
        );
        assert_eq!(installed(&["sh"]).unwrap(), [find("sh").unwrap()]);
    }
}
