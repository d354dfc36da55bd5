//! A scheduler's files on disk and in the library: what the front end asks for, and where it is
//! looked for.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use attune_language::resolve::{Loaded, Loader, NotFound, Request, SourceText};

use crate::{LIBRARY, find};

/// How the library's own files are called in messages.
fn library_name(name: &str) -> String {
    format!("library/{name}.sched")
}

/// Looks for a base in the folder of the file that extends it, in the named folders, then in the
/// library.
#[derive(Clone, Debug, Default)]
pub struct FileLoader {
    folders: Vec<PathBuf>,
    /// Canonical paths given out already, so that one file has one name whichever way it is
    /// reached.
    known: HashSet<PathBuf>,
}

/// A scheduler that the user named, and the loader for everything that it names.
#[derive(Clone, Debug)]
pub struct Opened {
    pub source: SourceText,
    pub loader: FileLoader,
}

/// Opens a scheduler by path, or by its name in the library. A path is a word that holds a
/// separator or a dot, or that names a file that is there.
///
/// # Errors
/// The file cannot be read, is no text, or there is neither a file nor a library scheduler of that
/// name.
pub fn open(scheduler: &Path, folders: &[PathBuf]) -> io::Result<Opened> {
    let loader = FileLoader { folders: folders.to_vec(), known: HashSet::new() };
    if !scheduler.is_file()
        && let Some(entry) = scheduler.to_str().and_then(find)
    {
        let source = SourceText { name: library_name(entry.name), text: entry.text.to_string() };
        return Ok(Opened { source, loader });
    }
    match read_text(scheduler) {
        Ok(text) => {
            let source = SourceText { name: scheduler.display().to_string(), text };
            Ok(Opened { source, loader })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_a_word(scheduler) => {
            Err(io::Error::new(
                error.kind(),
                "there is no such file, and no library scheduler of that name",
            ))
        }
        Err(error) => Err(error),
    }
}

/// Reads a file that should hold text.
///
/// # Errors
/// The file cannot be read, or is not UTF-8; then the message names the line and column of the
/// first byte that is not.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(fs::read(path)?).map_err(|error| {
        let (text, rest) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let line = text.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let column = text
            .iter()
            .rev()
            .take_while(|&&byte| byte != b'\n')
            .filter(|&&byte| byte & 0xC0 != 0x80)
            .count()
            + 1;
        let byte = rest.first().copied().unwrap_or_default();
        let message = format!(
            "line {line}, column {column}: byte {byte:#04x} is not UTF-8 text; save the \
             file as UTF-8"
        );
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

fn is_a_word(path: &Path) -> bool {
    path.components().count() == 1 && path.extension().is_none()
}

impl Loader for FileLoader {
    fn load(&mut self, request: &Request<'_>) -> Result<Loaded, NotFound> {
        let (file, from, library) = match *request {
            Request::Base { name, from } => (format!("{name}.sched"), from, find(name)),
            Request::Node { file, from } => (file.to_string(), from, None),
        };
        let mut missing = NotFound::default();
        for path in self.candidates(&file, from) {
            match read_text(&path) {
                Ok(text) => return Ok(Loaded { name: self.name_of(path), text }),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => missing.reason = Some(format!("{}: {error}", path.display())),
            }
            missing.tried.push(path.display().to_string());
        }
        if let Some(entry) = library {
            return Ok(Loaded { name: library_name(entry.name), text: entry.text.to_string() });
        }
        if matches!(request, Request::Base { .. }) {
            missing.tried.push("the standard library".to_string());
            missing.known = LIBRARY.iter().map(|entry| entry.name.to_string()).collect();
        }
        missing.known.extend(self.names_beside(request));
        Err(missing)
    }
}

impl FileLoader {
    fn candidates(&self, file: &str, from: &str) -> Vec<PathBuf> {
        let own = Path::new(from).parent().filter(|_| !from.starts_with("library/"));
        own.into_iter()
            .chain(self.folders.iter().map(PathBuf::as_path))
            .map(|folder| folder.join(file))
            .collect()
    }

    /// What the folders hold that the request could have meant: bases by their names, node
    /// schedulers by their files.
    fn names_beside(&self, request: &Request<'_>) -> Vec<String> {
        let (from, ending) = match request {
            Request::Base { from, .. } => (from, ".sched"),
            Request::Node { from, .. } => (from, ""),
        };
        let files = self.candidates(".", from).into_iter().filter_map(|at| fs::read_dir(at).ok());
        let names = files.flatten().filter_map(|file| file.ok()?.file_name().into_string().ok());
        names.filter_map(|name| name.strip_suffix(ending).map(String::from)).collect()
    }

    /// The path as it was reached the first time.
    fn name_of(&mut self, path: PathBuf) -> String {
        let Ok(real) = path.canonicalize() else { return path.display().to_string() };
        let same = |known: &&PathBuf| known.canonicalize().is_ok_and(|known| known == real);
        if let Some(known) = self.known.iter().find(same) {
            return known.display().to_string();
        }
        let name = path.display().to_string();
        self.known.insert(path);
        name
    }
}
