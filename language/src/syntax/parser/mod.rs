//! Tokens to tree, by recursive descent. Always succeeds: what does not fit goes into `ERROR`
//! nodes.
//!
//! Rules that every part keeps: a loop takes at least one token per turn; an error is reported at
//! most once per place, so that recovery need not know what was reported before; no node is
//! opened without [`Parser::has_room`], which bounds the tree's height and the parser's own stack.

mod distributed;
mod expressions;
mod items;
mod recovery;
mod statements;

use rowan::{Checkpoint, GreenNode, GreenNodeBuilder};

use super::lexer::Token;
use super::{MAX_HEIGHT, SyntaxKind, SyntaxKind::*};
use crate::diagnostic::{Code, Diagnostic, codes::syntax as codes};
use crate::source::{SourceId, Span};

/// The tree over all of the tokens, and at most `limit` diagnostics.
pub(super) fn parse(
    source: SourceId,
    text: &str,
    tokens: &[Token],
    limit: usize,
) -> (GreenNode, Vec<Diagnostic>) {
    let meaningful =
        (0..tokens.len()).filter(|&index| !is_passed_over(tokens[index].kind)).collect();
    let mut parser = Parser {
        source,
        text,
        tokens,
        meaningful,
        at: 0,
        emitted: 0,
        builder: GreenNodeBuilder::new(),
        open: Vec::new(),
        completed: 0,
        diagnostics: Vec::new(),
        limit,
        last_error: None,
        is_too_deep: false,
    };
    parser.file();
    (parser.builder.finish(), parser.diagnostics)
}

/// Nodes that may be opened below a place that [`Parser::has_room`] without asking again: names,
/// types, error nodes.
const MARGIN: usize = 8;

struct Parser<'a> {
    source: SourceId,
    text: &'a str,
    tokens: &'a [Token],
    /// The indices of the tokens that the grammar speaks of.
    meaningful: Vec<usize>,
    /// The next of them, as an index into `meaningful`.
    at: usize,
    /// How many of all tokens are in the tree already.
    emitted: usize,
    builder: GreenNodeBuilder<'static>,
    /// For each open node, the height of what it holds so far.
    open: Vec<u32>,
    /// The height of the node that was finished last.
    completed: u32,
    diagnostics: Vec<Diagnostic>,
    limit: usize,
    /// Where the last error was reported, as `at`.
    last_error: Option<usize>,
    /// Whether this part of the scheduler has been called too deep: once is enough.
    is_too_deep: bool,
}

/// Spaces, and characters that mean nothing: the lexer has complained about those.
fn is_passed_over(kind: SyntaxKind) -> bool {
    kind.is_trivia() || kind == UNKNOWN
}

// Looking ahead.
impl Parser<'_> {
    fn token(&self, n: usize) -> Option<Token> {
        self.meaningful.get(self.at + n).map(|&index| self.tokens[index])
    }

    /// The kind of the `n`th token from here, which is the 0th.
    fn nth(&self, n: usize) -> SyntaxKind {
        self.token(n).map_or(EOF, |token| token.kind)
    }

    fn current(&self) -> SyntaxKind {
        self.nth(0)
    }

    fn is_at(&self, kind: SyntaxKind) -> bool {
        self.current() == kind
    }

    fn nth_text(&self, n: usize) -> &str {
        self.token(n).map_or("", |token| &self.text[token.start as usize..token.end as usize])
    }

    /// Whether the `n`th token is that word, which is not reserved.
    fn nth_is_word(&self, n: usize, word: SyntaxKind) -> bool {
        self.nth(n) == IDENT && Some(self.nth_text(n)) == word.text()
    }

    /// Whether two bars stand here with nothing between them.
    fn is_at_two_bars(&self) -> bool {
        let (Some(first), Some(second)) = (self.token(0), self.token(1)) else { return false };
        first.kind == PIPE && second.kind == PIPE && first.end == second.start
    }

    /// Whether a new line begins between the last token and this one.
    fn is_on_new_line(&self) -> bool {
        let Some(here) = self.token(0) else { return true };
        self.text[self.previous_span().end as usize..here.start as usize].contains('\n')
    }

    /// The token here; at the end of the text, nothing.
    fn span(&self) -> Span {
        let end = self.text.len() as u32;
        let (start, end) = self.token(0).map_or((end, end), |token| (token.start, token.end));
        Span { source: self.source, start, end }
    }

    /// The token before; at the start of the text, nothing.
    fn previous_span(&self) -> Span {
        let before = self.at.checked_sub(1).and_then(|at| self.meaningful.get(at));
        let (start, end) =
            before.map_or((0, 0), |&index| (self.tokens[index].start, self.tokens[index].end));
        Span { source: self.source, start, end }
    }

    /// The token here, as messages call it.
    fn found(&self) -> String {
        const LONGEST: usize = 24;
        let text = self.nth_text(0);
        match self.current() {
            EOF => "the end of the file".to_string(),
            VERBATIM_EXPR_TEXT | VERBATIM_STMT_TEXT => "verbatim text".to_string(),
            _ if text.len() > LONGEST => {
                format!("`{}..`", &text[..text.floor_char_boundary(LONGEST)])
            }
            _ => format!("`{text}`"),
        }
    }
}

// Building the tree.
impl Parser<'_> {
    /// Puts the spaces before the next token into the tree.
    fn emit_spaces(&mut self) {
        let next = self.meaningful.get(self.at).copied().unwrap_or(self.tokens.len());
        while self.emitted < next {
            self.emit(self.tokens[self.emitted].kind);
        }
    }

    fn emit(&mut self, kind: SyntaxKind) {
        let token = self.tokens[self.emitted];
        self.builder.token(raw(kind), &self.text[token.start as usize..token.end as usize]);
        self.emitted += 1;
    }

    /// Takes the token here.
    fn bump(&mut self) {
        self.bump_as(self.current());
    }

    /// Takes the token here, as one of another kind.
    fn bump_as(&mut self, kind: SyntaxKind) {
        if self.at < self.meaningful.len() {
            self.emit_spaces();
            self.emit(kind);
            self.at += 1;
        }
    }

    /// Takes the two bars here as one token.
    fn bump_two_bars(&mut self) {
        self.emit_spaces();
        self.builder.token(raw(PIPE_PIPE), "||");
        self.emitted += 2;
        self.at += 2;
    }

    fn eat(&mut self, kind: SyntaxKind) -> bool {
        let found = self.is_at(kind);
        if found {
            self.bump();
        }
        found
    }

    fn start(&mut self, kind: SyntaxKind) {
        self.emit_spaces();
        self.builder.start_node(raw(kind));
        self.open.push(0);
    }

    /// Where a node that is not open yet would begin.
    fn checkpoint(&mut self) -> Checkpoint {
        self.emit_spaces();
        self.builder.checkpoint()
    }

    /// Opens a node around what came since `checkpoint`: no node, or one that was finished last.
    fn start_around(&mut self, checkpoint: Checkpoint, kind: SyntaxKind) {
        self.builder.start_node_at(checkpoint, raw(kind));
        self.open.push(self.completed);
    }

    fn finish(&mut self) {
        self.builder.finish_node();
        self.completed = self.open.pop().unwrap_or(0) + 1;
        if let Some(parent) = self.open.last_mut() {
            *parent = (*parent).max(self.completed);
        }
    }

    /// Whether a node can be opened here without the tree becoming too high.
    fn has_room(&self) -> bool {
        self.open.len() + MARGIN < MAX_HEIGHT as usize
    }

    /// Whether a node can be opened around the one that was finished last.
    fn has_room_around(&self) -> bool {
        self.open.len() + self.completed as usize + MARGIN < MAX_HEIGHT as usize
    }
}

// Reporting.
impl Parser<'_> {
    /// Reports an error at the token here, unless something has been said about this place already.
    fn error(
        &mut self,
        code: Code,
        message: impl Into<String>,
        finish: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        self.error_at(self.span(), code, message, finish);
    }

    /// Reports an error that was found here, about another place.
    fn error_at(
        &mut self,
        span: Span,
        code: Code,
        message: impl Into<String>,
        finish: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        if self.last_error == Some(self.at) {
            return;
        }
        self.last_error = Some(self.at);
        if self.diagnostics.len() < self.limit && !self.follows_unknown_text() {
            self.diagnostics.push(finish(Diagnostic::new(code, span, message)));
        }
    }

    /// Whether the lexer has complained about what stands directly before this token.
    fn follows_unknown_text(&self) -> bool {
        let next = self.meaningful.get(self.at).copied().unwrap_or(self.tokens.len());
        let first = self.at.checked_sub(1).map_or(0, |at| self.meaningful[at] + 1);
        self.tokens[first..next].iter().any(|token| token.kind == UNKNOWN)
    }

    /// Takes that token, or says that it is missing.
    fn expect(&mut self, kind: SyntaxKind, context: &str) -> bool {
        if self.eat(kind) {
            return true;
        }
        let expected = kind.text().unwrap_or("");
        let message = format!("expected `{expected}` {context}, found {}", self.found());
        self.error(codes::UNEXPECTED, message, |it| {
            it.label(format!("`{expected}` belongs before this"))
        });
        false
    }

    /// Says that the text is nested too deeply here.
    fn too_deep(&mut self) {
        if !self.is_too_deep {
            let message =
                format!("this is nested more than {} levels deep", MAX_HEIGHT as usize - MARGIN);
            self.error(codes::TOO_DEEP, message, |it| {
                it.hint("compute the parts in statements of their own")
            });
        }
        self.is_too_deep = true;
        self.last_error = Some(self.at);
    }
}

fn raw(kind: SyntaxKind) -> rowan::SyntaxKind {
    rowan::SyntaxKind(kind as u16)
}
