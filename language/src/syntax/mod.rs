//! Text to tree: the lexer, a parser that never fails, the lossless tree, and the typed view over
//! it.
//!
//! Invariants: the tree's text is the input, byte for byte, whatever the input; no tree is higher
//! than [`MAX_HEIGHT`], so a pass may walk it by recursion; in a text without errors every node but
//! the root begins and ends with a token that means something, never with a space or a comment; the
//! time taken is linear in the text.

pub mod ast;
mod kind;
mod lexer;
mod parser;
mod validate;

pub use kind::{Language, SyntaxElement, SyntaxKind, SyntaxNode, SyntaxToken};

use ast::AstNode;

use crate::diagnostic::{Diagnostic, codes::syntax as codes};
use crate::source::{SourceId, Span};

/// The greatest number of nodes on the way from the root to a leaf.
pub const MAX_HEIGHT: u32 = 256;

/// The greatest number of diagnostics about one file's syntax, and of errors about one scheduler's
/// meaning; one more says that there are others.
pub const MAX_DIAGNOSTICS: usize = 100;

/// The longest text that is read, in bytes.
pub const MAX_LENGTH: usize = 16 << 20;

/// What came of a text: always a tree, and what is wrong with it, in the order of the text.
#[derive(Clone, Debug)]
pub struct Parse {
    pub source: SourceId,
    tree: rowan::GreenNode,
    pub diagnostics: Vec<Diagnostic>,
}

impl Parse {
    /// The root of the tree.
    pub fn syntax(&self) -> SyntaxNode {
        SyntaxNode::new_root(self.tree.clone())
    }

    /// What the file holds; none if that could not be made out.
    pub fn file(&self) -> Option<ast::File> {
        ast::Root::cast(self.syntax()).and_then(|root| root.file())
    }

    pub fn has_errors(&self) -> bool {
        crate::diagnostic::has_errors(&self.diagnostics)
    }

    /// The greatest number of nodes on the way from the root to a leaf.
    pub fn height(&self) -> u32 {
        let mut height = 0;
        let mut greatest = 0;
        for event in self.syntax().preorder() {
            match event {
                rowan::WalkEvent::Enter(_) => height += 1,
                rowan::WalkEvent::Leave(_) => height -= 1,
            }
            greatest = greatest.max(height);
        }
        greatest
    }

    /// The tree as an indented list of its nodes and tokens, spaces left out: for tests and for the
    /// curious.
    pub fn dump(&self) -> String {
        let mut out = String::new();
        let mut depth = 0;
        for event in self.syntax().preorder_with_tokens() {
            match event {
                rowan::WalkEvent::Enter(element) => {
                    if !element.kind().is_trivia() {
                        let text = element
                            .as_token()
                            .map(|token| format!(" {:?}", token.text()))
                            .unwrap_or_default();
                        out += &format!(
                            "{:indent$}{:?}{text}\n",
                            "",
                            element.kind(),
                            indent = depth * 2
                        );
                    }
                    depth += 1;
                }
                rowan::WalkEvent::Leave(_) => depth -= 1,
            }
        }
        out
    }
}

/// Reads a scheduler, a distributed scheduler, or a file of aspects. Never fails and never panics.
pub fn parse(source: SourceId, text: &str) -> Parse {
    if text.len() > MAX_LENGTH {
        return refuse_length(source, text);
    }
    let (tokens, mut diagnostics) = lexer::lex(source, text, MAX_DIAGNOSTICS + 1);
    let (tree, parser_diagnostics) = parser::parse(source, text, &tokens, MAX_DIAGNOSTICS + 1);
    diagnostics.extend(parser_diagnostics);
    let mut parse = Parse { source, tree, diagnostics };
    parse.diagnostics.extend(validate::validate(source, &parse.syntax(), MAX_DIAGNOSTICS + 1));
    parse.diagnostics.sort_by_key(|diagnostic| diagnostic.primary.span.start);
    if let Some(first_left_out) = parse.diagnostics.get(MAX_DIAGNOSTICS) {
        let note = Diagnostic::new(
            codes::TOO_MANY_ERRORS,
            first_left_out.primary.span,
            format!("more than {MAX_DIAGNOSTICS} problems in this file; the rest is not shown"),
        )
        .label("from here on")
        .hint("mend the first ones and look again: the others often follow from them");
        parse.diagnostics.truncate(MAX_DIAGNOSTICS);
        parse.diagnostics.push(note);
    }
    parse
}

/// A tree of one token, and the reason.
fn refuse_length(source: SourceId, text: &str) -> Parse {
    let mut builder = rowan::GreenNodeBuilder::new();
    builder.start_node(rowan::SyntaxKind(SyntaxKind::ROOT as u16));
    // A tree counts its bytes in 32 bits: of a longer text it keeps what it can.
    let kept = text.floor_char_boundary(u32::MAX as usize);
    builder.token(rowan::SyntaxKind(SyntaxKind::UNKNOWN as u16), &text[..kept]);
    builder.finish_node();
    let start = Span { source, start: 0, end: 0 };
    let message = format!("the file is longer than {} MiB", MAX_LENGTH >> 20);
    let diagnostic =
        Diagnostic::new(codes::FILE_TOO_LONG, start, message).hint("is it a scheduler at all?");
    Parse { source, tree: builder.finish(), diagnostics: vec![diagnostic] }
}
