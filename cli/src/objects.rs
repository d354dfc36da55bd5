//! Objects that were compiled before: to compile a policy takes one to two seconds, to find its
//! object none. Each lies in a file of its own behind the words that it was made of.
//!
//! Invariant: an object is used only if it was made of the same words, is whole, and lies in a
//! folder that nobody but this user can write to: the kernel runs it. Whatever goes wrong here
//! costs a compilation and nothing else.

use std::fs::{self, DirBuilder, File, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use attune_linux::process::effective_user;

/// The one that was used longest ago goes first. An object has about a megabyte.
const MOST: usize = 64;
const OWN_ALONE: u32 = 0o700;
const OTHERS_WRITE: u32 = 0o022;

pub struct Objects {
    folder: PathBuf,
}

impl Objects {
    /// This user's. None: there is no such folder, and none can be made.
    pub fn open() -> Option<Objects> {
        let cache = match effective_user() {
            0 => PathBuf::from("/var/cache"),
            _ => std::env::var_os("XDG_CACHE_HOME")
                .map(PathBuf::from)
                .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))?,
        };
        Objects::at(cache.join("attune/objects"))
    }

    fn at(folder: PathBuf) -> Option<Objects> {
        DirBuilder::new().recursive(true).mode(OWN_ALONE).create(&folder).ok()?;
        let is_safe = |about: Metadata| {
            about.uid() == effective_user() && about.mode() & OTHERS_WRITE == 0 && about.is_dir()
        };
        fs::symlink_metadata(&folder).is_ok_and(is_safe).then_some(Objects { folder })
    }

    /// The object that was made of these words.
    pub fn get(&self, words: &str) -> Option<Vec<u8>> {
        let path = self.path(words);
        let bytes = fs::read(&path).ok()?;
        let object = bytes.strip_prefix(words.as_bytes())?.strip_prefix(SEPARATOR)?;
        let (sum, object) = object.split_first_chunk()?;
        if u64::from_le_bytes(*sum) != hash(object) {
            return None;
        }
        // It is used now.
        let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(object.to_vec())
    }

    /// Keeps the object, if it can.
    pub fn put(&self, words: &str, object: &[u8]) {
        // A file that another run reads meanwhile stays whole.
        let written = || -> io::Result<()> {
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            for part in [words.as_bytes(), SEPARATOR, &hash(object).to_le_bytes(), object] {
                file.write_all(part)?;
            }
            file.persist(self.path(words))?;
            Ok(())
        };
        if written().is_ok() {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&self) {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut files: Vec<(SystemTime, PathBuf)> = files
            .filter_map(|file| Some((file.metadata().ok()?.modified().ok()?, file.path())))
            .collect();
        files.sort();
        let surplus = files.len().saturating_sub(MOST);
        for (_, path) in &files[..surplus] {
            let _ = fs::remove_file(path);
        }
    }

    fn path(&self, words: &str) -> PathBuf {
        self.folder.join(format!("{:016x}", hash(words.as_bytes())))
    }
}

/// No text has it.
const SEPARATOR: &[u8] = b"\0";

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn objects(folder: &Path) -> Objects {
        Objects::at(folder.join("attune/objects")).unwrap()
    }

    #[test]
    fn an_object_is_found_by_the_words_that_it_was_made_of() {
        let folder = tempfile::tempdir().unwrap();
        let objects = objects(folder.path());
        objects.put("one", b"first");
        objects.put("two", b"");
        assert_eq!(objects.get("one").as_deref(), Some(&b"first"[..]));
        assert_eq!(objects.get("two").as_deref(), Some(&b""[..]));
        assert_eq!(objects.get("three"), None);
        objects.put("one", b"anew");
        assert_eq!(objects.get("one").as_deref(), Some(&b"anew"[..]));
    }

    #[test]
    fn a_file_that_is_not_whole_or_of_other_words_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let objects = objects(folder.path());
        objects.put("words", b"object");
        let path = objects.path("words");
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(objects.get("words"), None, "{length}");
        }
        fs::rename(&path, objects.path("other")).unwrap();
        assert_eq!(objects.get("other"), None);
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        objects(folder.path());
        let inside = folder.path().join("attune/objects");
        fs::set_permissions(&inside, Permissions::from_mode(0o777)).unwrap();
        assert!(Objects::at(inside).is_none());
        std::os::unix::fs::symlink("/tmp", folder.path().join("link")).unwrap();
        assert!(Objects::at(folder.path().join("link")).is_none());
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(Objects::at(folder.path().join("file/objects")).is_none());
    }

    #[test]
    fn those_that_were_used_longest_ago_go_first() {
        let folder = tempfile::tempdir().unwrap();
        let objects = objects(folder.path());
        for number in 0..MOST {
            objects.put(&number.to_string(), b"object");
            let old = SystemTime::now() - std::time::Duration::from_secs(1000 - number as u64);
            let file = File::open(objects.path(&number.to_string())).unwrap();
            file.set_modified(old).unwrap();
        }
        assert!(objects.get("0").is_some());
        objects.put("new", b"object");
        assert!(objects.get("0").is_some() && objects.get("new").is_some());
        assert!(objects.get("1").is_none() && objects.get("2").is_some());
    }
}
