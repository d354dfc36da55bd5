//! A copy given by its address and hash.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

use super::archive::said;
use crate::cache::Source;

/// Gets `address#sha256=hash` (an address needs the hash, a file does not) and checks it. Returns
/// where it lies.
pub fn fetch(what: &str, folder: &Path) -> Result<(PathBuf, Source)> {
    let (address, wanted) = match what.split_once("#sha256=") {
        Some((address, hash)) => (address, Some(hash.trim().to_ascii_lowercase())),
        None => (what, None),
    };
    let remote = address.contains("://");
    let path = if remote {
        ensure!(wanted.is_some(), "{address}: add `#sha256=` and the hash that the file must have");
        fs::create_dir_all(folder)?;
        let name = address.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("copy");
        let path = folder.join(name);
        let mut command = Command::new("curl");
        command.args([
            "--fail",
            "--silent",
            "--show-error",
            "--location",
            "--retry",
            "3",
            "--max-time",
            "600",
        ]);
        command.arg("--output").arg(&path).arg(address);
        said(command).with_context(|| format!("cannot fetch {address}"))?;
        path
    } else {
        PathBuf::from(address)
    };
    let found = hash(&path)?;
    if let Some(wanted) = wanted
        && wanted != found
    {
        bail!(
            "{address} is not the file that was meant: its SHA-256 is\n  {found}, not\n  {wanted}"
        );
    }
    Ok((path, Source { from: address.to_owned(), sha256: found }))
}

/// A file's SHA-256 in hexadecimal.
pub fn hash(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_hash_and_a_missing_one_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("copy");
        fs::write(&file, "abc").expect("written");
        let right = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let get = |what: String| fetch(&what, folder.path());
        let (_, source) =
            get(format!("{}#sha256={right}", file.display())).expect("the right hash");
        assert_eq!(source.sha256, right);
        assert_eq!(get(file.display().to_string()).expect("a file needs none").1.sha256, right);

        let wrong = get(format!("{}#sha256={}", file.display(), right.replace('b', "c")))
            .expect_err("wrong");
        assert!(
            wrong.to_string().contains("not the file that was meant")
                && wrong.to_string().contains(right)
        );
        let missing = get("https://example.org/linux.deb".to_owned()).expect_err("no hash");
        assert!(missing.to_string().contains("#sha256="), "{missing}");
        assert!(
            get("/does/not/exist".to_owned())
                .expect_err("no file")
                .to_string()
                .contains("/does/not/exist")
        );
    }
}
