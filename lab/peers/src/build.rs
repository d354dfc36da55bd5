//! Builds peers with `cargo install`, each into a folder of its name and version, and knows which
//! are there.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{Peer, count_lines};

/// Where built peers lie: `NAME-VERSION/bin/NAME`, with the lines of its text in
/// `NAME-VERSION/lines`.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

/// Compilers that know what the peers' BPF programs need, by preference.
const COMPILERS: [&str; 5] = ["clang-19", "clang-20", "clang-21", "clang-22", "clang"];

impl Cache {
    /// In `ATTUNE_PEERS_DIR`, or `attune/peers` in XDG_CACHE_HOME, or `~/.cache/attune/peers`.
    pub fn default_place() -> Cache {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = || set("HOME").unwrap_or_else(|| PathBuf::from("/")).join(".cache");
        let cache = || set("XDG_CACHE_HOME").filter(|path| path.is_absolute()).unwrap_or_else(home);
        Cache::at(set("ATTUNE_PEERS_DIR").unwrap_or_else(|| cache().join("attune/peers")))
    }

    pub fn at(folder: PathBuf) -> Cache {
        Cache { folder }
    }

    fn of(&self, peer: &Peer) -> PathBuf {
        self.folder.join(format!("{}-{}", peer.name, peer.version))
    }

    /// Its program, if it was built.
    pub fn program(&self, peer: &Peer) -> Option<PathBuf> {
        // The lines are written last.
        self.counted(peer).map(|_| self.of(peer).join("bin").join(peer.name))
    }

    /// How many lines its text has, C and Rust, without the libraries that it shares with others:
    /// counted when it was built, or as they were counted in what its authors have published.
    pub fn lines(&self, peer: &Peer) -> usize {
        self.counted(peer).unwrap_or(peer.published_lines)
    }

    fn counted(&self, peer: &Peer) -> Option<usize> {
        fs::read_to_string(self.of(peer).join("lines")).ok()?.trim().parse().ok()
    }

    /// Builds it unless it is there; minutes. Returns its program. Err: what is missing, or the
    /// compiler's last words.
    pub fn build(&self, peer: &Peer) -> Result<PathBuf> {
        if let Some(program) = self.program(peer) {
            return Ok(program);
        }
        let target = self.folder.join("target");
        fs::create_dir_all(&target).with_context(|| format!("cannot make {}", target.display()))?;
        let mut command = Command::new("cargo");
        command.args([
            "install",
            "--locked",
            "--force",
            peer.name,
            "--version",
            peer.version,
            "--root",
        ]);
        command.arg(self.of(peer)).envs(peer.environment.iter().copied());
        // What they have in common is built once.
        command.env("CARGO_TARGET_DIR", &target).env_remove("RUSTFLAGS");
        if env::var_os("BPF_CLANG").is_none() {
            command.env("BPF_CLANG", compiler()?);
        }
        if let (None, Some(folder)) = (env::var_os("LIBCLANG_PATH"), libclang()) {
            command.env("LIBCLANG_PATH", folder);
        }
        let output = command.output().context("cannot run cargo")?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            let lines: Vec<_> = words.lines().collect();
            bail!(
                "{} {} cannot be built; if a library is missing, `tools/setup.sh peers` installs \
                    what is needed:\n{}",
                peer.name,
                peer.version,
                lines[lines.len().saturating_sub(30)..].join("\n")
            );
        }
        let lines =
            self.count(peer).with_context(|| format!("cannot count the lines of {}", peer.name))?;
        fs::write(self.of(peer).join("lines"), format!("{lines}\n"))?;
        self.program(peer).context("it was built, and is not there")
    }

    /// Lines of the text that cargo has unpacked to build it.
    fn count(&self, peer: &Peer) -> Result<usize> {
        let cargo = env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cargo");
        let registries = cargo.unwrap_or_else(home).join("registry/src");
        for registry in fs::read_dir(&registries)? {
            let folder =
                registry?.path().join(format!("{}-{}", peer.name, peer.version)).join("src");
            if folder.exists() {
                return count_in(&folder);
            }
        }
        bail!("its text is not in {}", registries.display())
    }
}

fn count_in(folder: &Path) -> Result<usize> {
    let mut sum = 0;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let counts = path
            .extension()
            .is_some_and(|ending| ["c", "h", "rs"].iter().any(|other| ending == *other));
        if path.is_dir() {
            // `bpf/lib` is a library that some of them carry along and share.
            sum += if path.ends_with("bpf/lib") { 0 } else { count_in(&path)? };
        } else if counts {
            sum += count_lines(&String::from_utf8_lossy(&fs::read(&path)?));
        }
    }
    Ok(sum)
}

fn compiler() -> Result<&'static str> {
    let works = |name: &&&str| {
        let output = Command::new(name).args(["--target=bpf", "-mcpu=v4", "--version"]).output();
        output.is_ok_and(|output| output.status.success())
    };
    COMPILERS
        .iter()
        .find(works)
        .copied()
        .context("there is no clang for BPF; `tools/setup.sh peers` installs one")
}

/// Debian has a folder for each version of LLVM.
fn libclang() -> Option<PathBuf> {
    let places = (19..=22).map(|version| PathBuf::from(format!("/usr/lib/llvm-{version}/lib")));
    places
        .into_iter()
        .find(|place| place.join("libclang.so").exists() || place.join("libclang.so.1").exists())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PEERS, find};

    #[test]
    fn a_peer_is_there_when_it_is_complete() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::at(folder.path().to_owned());
        let peer = find("bpfland").expect("it is known");
        assert_eq!(peer.name, "scx_bpfland");
        assert_eq!((cache.program(peer), cache.lines(peer)), (None, peer.published_lines));
        let place = folder.path().join(format!("scx_bpfland-{}", peer.version));
        fs::create_dir_all(place.join("bin")).expect("made");
        fs::write(place.join("bin/scx_bpfland"), "").expect("written");
        assert_eq!(cache.program(peer), None, "a build that was interrupted");
        fs::write(place.join("lines"), "123\n").expect("written");
        assert_eq!(cache.program(peer), Some(place.join("bin/scx_bpfland")));
        assert_eq!(cache.lines(peer), 123);
        assert_eq!(cache.build(peer).expect("it is there"), place.join("bin/scx_bpfland"));
    }

    #[test]
    fn names_are_unique_and_unknown_ones_are_none() {
        assert!(PEERS.iter().all(|peer| find(peer.name) == Some(peer)));
        assert_eq!(find("scx_nothing"), None);
    }
}
