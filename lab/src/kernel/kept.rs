//! Runs that were made before: each in a file named by the hash of all that it was made of, so that an experiment that was
//! interrupted goes on where it was, and what has not changed is not measured again.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use super::Run;

/// A folder of runs.
#[derive(Clone, Debug)]
pub struct Kept(PathBuf);

impl Kept {
    pub fn at(folder: PathBuf) -> Result<Kept> {
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        Ok(Kept(folder))
    }

    fn path(&self, hash: &str) -> PathBuf {
        self.0.join(format!("{hash}.json"))
    }

    /// The runs under that hash. None: there are none that can be read.
    pub fn find(&self, hash: &str) -> Option<Vec<Run>> {
        serde_json::from_slice(&fs::read(self.path(hash)).ok()?).ok()
    }

    /// Keeps runs, whole or not at all.
    pub fn keep(&self, hash: &str, runs: &[Run]) -> Result<()> {
        let (path, half) = (self.path(hash), self.0.join(format!("{hash}.{}", std::process::id())));
        fs::write(&half, serde_json::to_vec(runs)?)
            .and_then(|()| fs::rename(&half, &path))
            .with_context(|| format!("writing {}", path.display()))
    }
}

/// The hash of a fingerprint of the machine and its command, of files that they use, and of what else makes a run another.
pub fn hash(fingerprint: &str, files: &[&Path], also: &str) -> Result<String> {
    let mut hash = Sha256::new();
    hash.update(format!("{fingerprint}\n{also}\n"));
    for path in files {
        let bytes = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        hash.update(Sha256::digest(&bytes));
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_come_back_under_their_own_hash_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = Kept::at(folder.path().join("runs")).expect("made");
        let file = folder.path().join("scheduler.o");
        fs::write(&file, "one").expect("written");
        let one = hash("machine", &[&file], "round 1").expect("a hash");
        let run = Run { figures: serde_json::json!({ "ns": 7 }), choices: Some(3) };
        assert!(kept.find(&one).is_none());
        kept.keep(&one, std::slice::from_ref(&run)).expect("kept");
        let found = kept.find(&one).expect("it is there");
        assert_eq!((found[0].figures["ns"].as_u64(), found[0].choices), (Some(7), Some(3)));

        assert_ne!(hash("machine", &[&file], "round 2").expect("a hash"), one);
        assert_ne!(hash("another", &[&file], "round 1").expect("a hash"), one);
        fs::write(&file, "two").expect("written");
        assert_ne!(hash("machine", &[&file], "round 1").expect("a hash"), one);
        // A file that was cut off is none.
        fs::write(kept.path(&one), "[{").expect("written");
        assert!(kept.find(&one).is_none());
        assert!(hash("machine", &[Path::new("/nonexistent")], "").is_err());
    }
}
