//! How the front end asks for files: it does no input itself.

/// A text and the name by which messages call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText {
    pub name: String,
    pub text: String,
}

/// A file that another one names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// `extends NAME` in the file `from`: usually NAME.sched beside it, in a named folder, or in
    /// the standard library.
    Base { name: &'a str, from: &'a str },
    /// A node scheduler's file, as `nodefamilies` in the file `from` writes it.
    Node { file: &'a str, from: &'a str },
}

/// Two requests that lead to the same file give the same `SourceText::name`: so a cycle is known.
pub type Loaded = SourceText;

/// A file is not there, or cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotFound {
    /// Where it was looked for, as a person would write the places.
    pub tried: Vec<String>,
    /// Why a file that is there could not be read.
    pub reason: Option<String>,
    /// Names that a request of this kind could have used.
    pub known: Vec<String>,
}

/// Reads the files that a scheduler names.
pub trait Loader {
    fn load(&mut self, request: &Request<'_>) -> Result<Loaded, NotFound>;
}

/// A loader over texts in memory: `(file name, text)`. A base NAME is the file `NAME.sched`.
impl Loader for &[(&str, &str)] {
    fn load(&mut self, request: &Request<'_>) -> Result<Loaded, NotFound> {
        let wanted = match request {
            Request::Base { name, .. } => format!("{name}.sched"),
            Request::Node { file, .. } => file.to_string(),
        };
        match self.iter().find(|(name, _)| *name == wanted) {
            Some((name, text)) => Ok(Loaded { name: name.to_string(), text: text.to_string() }),
            None => {
                let known = self.iter().map(|(name, _)| match request {
                    Request::Base { .. } => name.trim_end_matches(".sched").to_string(),
                    Request::Node { .. } => name.to_string(),
                });
                Err(NotFound { tried: vec![wanted], reason: None, known: known.collect() })
            }
        }
    }
}
