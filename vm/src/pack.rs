//! What a program needs to run where nothing else is: its interpreter and its libraries.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Files and links to copy, at their places, in order.
#[derive(Default)]
pub struct Packing(BTreeSet<PathBuf>);

impl Packing {
    /// A file, or a folder with all that is in it; programs among them bring what they need.
    pub fn add(&mut self, path: &Path) -> Result<()> {
        self.add_with(path, Packing::needs_of)
    }

    /// The same, with `needs` for what each file needs.
    fn add_with(
        &mut self,
        path: &Path,
        needs: fn(&mut Packing, &Path) -> Result<()>,
    ) -> Result<()> {
        let told = || format!("cannot pack {}", path.display());
        let path = &plain(&std::path::absolute(path)?);
        self.add_links_above(path).with_context(told)?;
        // Where it really is, so that the folders can be made before what is in them.
        let above = fs::canonicalize(path.parent().unwrap_or(path)).with_context(told)?;
        let path = path.file_name().map_or(above.clone(), |name| above.join(name));
        let about = fs::symlink_metadata(&path).with_context(told)?;
        if !self.0.insert(path.clone()) {
            return Ok(());
        }
        if about.is_symlink() {
            // The link after this one, and so on to the file itself.
            return self.add_with(&above.join(fs::read_link(&path)?), needs).with_context(told);
        }
        if about.is_dir() {
            let mut inside: Vec<_> = fs::read_dir(&path)?.collect::<Result<_, _>>()?;
            inside.sort_by_key(|entry| entry.file_name());
            return inside.iter().try_for_each(|entry| self.add_with(&entry.path(), needs));
        }
        needs(self, &path)
    }

    /// A program by its name, found by `search` (a PATH) unless it holds a `/`. Returns its place.
    pub fn program(
        &mut self,
        name: &OsStr,
        folder: &Path,
        search: Option<&OsStr>,
    ) -> Result<Option<PathBuf>> {
        let found = find_program(name, folder, search);
        if let Some(path) = &found {
            self.add(path)?;
        }
        Ok(found)
    }

    /// In order.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(PathBuf::as_path)
    }

    /// A path may lead through links: `/lib` is one.
    fn add_links_above(&mut self, path: &Path) -> Result<()> {
        let above: Vec<_> = path.ancestors().skip(1).collect();
        for folder in above.into_iter().rev() {
            if fs::symlink_metadata(folder).is_ok_and(|about| about.is_symlink())
                && self.0.insert(folder.to_owned())
            {
                let beside = folder.parent().unwrap_or(folder);
                self.add_links_above(&plain(&beside.join(fs::read_link(folder)?)).join("x"))?;
            }
        }
        Ok(())
    }

    fn needs_of(&mut self, path: &Path) -> Result<()> {
        let mut start = [0; 256];
        let length = fs::File::open(path).and_then(|mut file| file.read(&mut start));
        let start = &start[..length.with_context(|| format!("cannot read {}", path.display()))?];
        if let Some(line) = start.strip_prefix(b"#!") {
            let line = String::from_utf8_lossy(
                line.split(|byte| *byte == b'\n').next().unwrap_or_default(),
            );
            let mut words = line.split_whitespace();
            let interpreter = words.next().unwrap_or_default();
            self.add(Path::new(interpreter))?;
            if interpreter.ends_with("/env") {
                let name = words.next().unwrap_or_default();
                self.program(
                    OsStr::new(name),
                    Path::new("/"),
                    std::env::var_os("PATH").as_deref(),
                )?;
            }
        } else if start.starts_with(b"\x7fELF") {
            for library in libraries(path)? {
                // The linker has listed what libraries need, too. It may find that only where this
                // program says: `systemd` names the folder of its own libraries.
                self.add_with(&library, |_, _| Ok(()))?;
            }
        }
        Ok(())
    }
}

/// `name` as a shell would find it.
fn find_program(name: &OsStr, folder: &Path, search: Option<&OsStr>) -> Option<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        let path = folder.join(name);
        return path.exists().then_some(path);
    }
    let folders = std::env::split_paths(search.unwrap_or(OsStr::new("/usr/bin:/bin")));
    folders.map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// The libraries that the dynamic linker would load for an ELF file, the linker among them. It does
/// not look beside the file unless the file says so; a program that loads such files itself, as a
/// browser does, has loaded what they need from there before.
fn libraries(path: &Path) -> Result<Vec<PathBuf>> {
    let linked = Linked::of(path, None)?;
    if linked.missing.is_empty() {
        return Ok(linked.libraries);
    }
    let beside = Linked::of(path, path.parent())?;
    if let Some(missing) = beside.missing.first() {
        bail!("cannot pack {}: it needs a library that is not here: {missing}", path.display());
    }
    Ok([linked.libraries, beside.libraries].concat())
}

/// What the dynamic linker answers for a file.
struct Linked {
    libraries: Vec<PathBuf>,
    /// Its words for each library, or version of one, that it does not find.
    missing: Vec<String>,
}

impl Linked {
    /// `first`: it looks into this folder before all others.
    fn of(file: &Path, first: Option<&Path>) -> Result<Linked> {
        let output = Command::new("ldd")
            .arg(file)
            .envs(first.map(|folder| ("LD_LIBRARY_PATH", folder)))
            .output()
            .context("cannot run ldd, which knows a program's libraries")?;
        let mut linked = Linked { libraries: vec![], missing: vec![] };
        // `ldd` refuses what is linked statically: it needs nothing.
        if !output.status.success() {
            return Ok(linked);
        }
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let place = line.split_once("=> ").map_or(line, |(_, place)| place).trim();
            let place = place.split(" (0x").next().unwrap_or_default();
            if line.contains("not found") {
                linked.missing.push(line.trim().to_owned());
            } else if place.starts_with('/') {
                linked.libraries.push(PathBuf::from(place));
            }
        }
        Ok(linked)
    }
}

/// Without `.` and `..`: each `..` undoes the folder before it, once links on the way to that are
/// followed.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                plain = fs::canonicalize(&plain).unwrap_or(plain);
                plain.pop();
            }
            std::path::Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_beside_the_file_is_found_and_one_that_is_nowhere_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let compile = |words: &[&str]| {
            let mut cc = Command::new("cc");
            cc.current_dir(&folder).args(["-shared", "-x", "c", "/dev/null"]).args(words);
            assert!(cc.status().expect("cc").success());
        };
        compile(&["-o", "libinner.so"]);
        compile(&["-o", "libouter.so", "-Wl,--no-as-needed", "-L.", "-x", "none", "-linner"]);
        let (inner, outer) = (folder.path().join("libinner.so"), folder.path().join("libouter.so"));
        assert!(libraries(&outer).expect("all are here").contains(&inner));
        fs::remove_file(&inner).expect("it was there");
        let error = libraries(&outer).expect_err("one is gone").to_string();
        assert!(error.contains("a library that is not here: libinner.so"), "{error}");
    }
}
