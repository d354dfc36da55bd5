//! Small files of the state folder, written as a whole or not at all.

use std::fs;
use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A reader sees the old text or the new one, also when this process is killed meanwhile.
pub fn write(path: &Path, value: &impl Serialize) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let fresh = path.with_extension(format!("{}.new", std::process::id()));
    fs::write(&fresh, serde_json::to_vec(value)?)?;
    fs::rename(&fresh, path)
}

/// None: there is no such file, or it is of another version.
pub fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}
