//! Keeps earlier runs, each in a file named by the hash of all that it was made of: an interrupted
//! experiment goes on where it was, and after a change the lab repeats only the runs that it
//! concerns.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::machine::Run;
use crate::files;

/// A folder of runs.
#[derive(Clone, Debug)]
pub struct RunCache(PathBuf);

impl RunCache {
    pub fn at(folder: PathBuf) -> Result<RunCache> {
        files::create_folder(&folder)?;
        Ok(RunCache(folder))
    }

    fn path(&self, hash: &str) -> PathBuf {
        self.0.join(format!("{hash}.json"))
    }

    /// The runs under that hash. None: there are none that can be read.
    pub fn find(&self, hash: &str) -> Option<Vec<Run>> {
        serde_json::from_slice(&fs::read(self.path(hash)).ok()?).ok()
    }

    pub fn keep(&self, hash: &str, runs: &[Run]) -> Result<()> {
        files::write_atomically(&self.path(hash), &serde_json::to_vec(runs)?)
    }
}

/// Hashes the fingerprint of a machine and its command, the files that they use, and `also`, which
/// tells runs apart that differ in nothing else.
pub fn hash(fingerprint: &str, paths: &[&Path], also: &str) -> Result<String> {
    let mut parts = format!("{fingerprint}\n{also}\n");
    for path in paths {
        let bytes = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        parts += &files::hash(&bytes);
    }
    Ok(files::hash(parts.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_come_back_under_their_own_hash_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = RunCache::at(folder.path().join("runs")).expect("made");
        let file = folder.path().join("scheduler.o");
        fs::write(&file, "one").expect("written");
        let one = hash("machine", &[&file], "round 1").expect("a hash");
        let run = Run { figures: serde_json::json!({ "ns": 7 }), choices: Some(3) };
        assert!(cache.find(&one).is_none());
        cache.keep(&one, std::slice::from_ref(&run)).expect("cache");
        let found = cache.find(&one).expect("it is there");
        assert_eq!((found[0].figures["ns"].as_u64(), found[0].choices), (Some(7), Some(3)));

        assert_ne!(hash("machine", &[&file], "round 2").expect("a hash"), one);
        assert_ne!(hash("another", &[&file], "round 1").expect("a hash"), one);
        fs::write(&file, "two").expect("written");
        assert_ne!(hash("machine", &[&file], "round 1").expect("a hash"), one);
        // A file that was cut off is ignored.
        fs::write(cache.path(&one), "[{").expect("written");
        assert!(cache.find(&one).is_none());
        assert!(hash("machine", &[Path::new("/nonexistent")], "").is_err());
    }
}
