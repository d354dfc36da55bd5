//! Files to one flat scheduler: follows `extends`, joins sections, lets derived handlers replace
//! their base's, and lays aspects around events.
//!
//! Order. Sections are joined from the base to the derived scheduler, then the aspect files in the
//! order given. Aspects wrap what was there before them: of two `before` parts the later added runs
//! first, of two `after` parts the later added runs last: an aspect sees the event begin before,
//! and end after, everything that it wraps. Parts that one file adds at the same place run in the
//! order in which they are written. Aspects stay when a derived scheduler replaces the handler that
//! they stand around.
//!
//! Nothing here knows names or types: duplicate variables, unknown events and the like are found by
//! lowering.

mod distributed;
mod flatten;
mod loader;

pub use distributed::{Family, FlatDistributed};
pub use flatten::{Flat, FlatHandler};
pub use loader::{Loaded, Loader, NotFound, Request, SourceText};

use crate::diagnostic::{Diagnostic, codes, suggest};
use crate::source::{SourceId, SourceMap, Span};
use crate::syntax::ast::{AstNode, File};
use crate::syntax::{Parse, parse};

/// A node of the syntax tree with the file that it stands in.
#[derive(Clone, Debug)]
pub struct Sited<N> {
    pub source: SourceId,
    pub node: N,
}

impl<N: AstNode> Sited<N> {
    pub fn span(&self) -> Span {
        self.node.span(self.source)
    }
}

/// What a file turned out to hold, with everything that it names.
#[derive(Clone, Debug)]
pub enum Resolved {
    Scheduler(Flat),
    Distributed(FlatDistributed),
}

/// Reads a scheduler with everything it extends and the aspect files. Files are added to `sources`,
/// findings to `diagnostics`; None if the main file holds no scheduler.
pub fn resolve(
    main: &SourceText,
    aspects: &[SourceText],
    loader: &mut dyn Loader,
    sources: &mut SourceMap,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Resolved> {
    let mut reader = Reader { loader, sources, diagnostics };
    let parsed = reader.read(main);
    match parsed.file()? {
        File::Scheduler(node) => {
            let mut flat = flatten::flatten(Sited { source: parsed.source, node }, &mut reader);
            for aspect in aspects {
                flatten::add_aspect_file(&mut flat, aspect, &mut reader);
            }
            Some(Resolved::Scheduler(flat))
        }
        File::Distributed(node) => {
            let master = Sited { source: parsed.source, node };
            Some(Resolved::Distributed(distributed::resolve(master, aspects, &mut reader)))
        }
        File::Aspects(node) => {
            let span = node.span(parsed.source);
            reader.diagnostics.push(
                Diagnostic::new(
                    codes::files::ASPECTS_ONLY,
                    span,
                    "this file holds aspects, and no scheduler",
                )
                .hint("give it with `--aspect`, together with a scheduler"),
            );
            None
        }
    }
}

/// Loads and parses files, and collects what there is to say about them.
struct Reader<'a> {
    loader: &'a mut dyn Loader,
    sources: &'a mut SourceMap,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Reader<'_> {
    fn read(&mut self, source: &SourceText) -> Parse {
        let id = self.sources.add(source.name.clone(), source.text.clone());
        let mut parsed = parse(id, &source.text);
        self.diagnostics.append(&mut parsed.diagnostics);
        parsed
    }

    /// Loads what the text at `span` asks for; says so if it is not there.
    fn load(&mut self, request: &Request<'_>, span: Span) -> Option<Loaded> {
        match self.loader.load(request) {
            Ok(loaded) => Some(loaded),
            Err(missing) => {
                let (name, wanted) = match *request {
                    Request::Base { name, .. } => (name, format!("the scheduler `{name}`")),
                    Request::Node { file, .. } => (file, format!("the file \"{file}\"")),
                };
                let meant = suggest(name, missing.known.iter().map(String::as_str));
                let mut diagnostic = Diagnostic::new(
                    codes::files::NOT_FOUND,
                    span,
                    format!("{wanted} cannot be found"),
                );
                if let Some(reason) = &missing.reason {
                    diagnostic = diagnostic.label(reason.clone());
                }
                diagnostic = diagnostic.hint(match (meant, missing.tried.as_slice()) {
                    (Some(meant), _) => format!("did you mean `{meant}`?"),
                    (None, []) => {
                        "there is nowhere to look; name a folder with `-I DIR`".to_string()
                    }
                    (None, tried) => {
                        format!("looked for {}; name more folders with `-I DIR`", tried.join(", "))
                    }
                });
                self.diagnostics.push(diagnostic);
                None
            }
        }
    }
}
