//! How the parser gets back into step: where parts begin and end, misspelt words, and skipping.

use super::Parser;
use crate::diagnostic::{codes::syntax as codes, suggest};
use crate::source::Span;
use crate::syntax::{SyntaxKind, SyntaxKind::*};

/// Words that begin a part of a scheduler, and nothing else.
pub(super) fn begins_item(kind: SyntaxKind) -> bool {
    matches!(
        kind,
        THREAD_KW
            | THREADIMPORTS_KW
            | DATA_KW
            | IMPORTS_KW
            | INVARIANT_KW
            | EVENT_KW
            | QUERY_KW
            | BEFORE_KW
            | AFTER_KW
    )
}

/// Words that begin a statement, and nothing else.
pub(super) fn begins_statement(kind: SyntaxKind) -> bool {
    kind.is_type()
        || matches!(
            kind,
            CONST_KW
                | IF_KW
                | ELSE_KW
                | WHILE_KW
                | DO_KW
                | FOR_KW
                | FOREACH_KW
                | CONTINUE_KW
                | BREAK_KW
                | RETURN_KW
                | DISPATCH_KW
                | DESTROY_KW
        )
}

/// Reserved words that connect others, and so are more likely a missing name's neighbour than the
/// name.
fn connects(kind: SyntaxKind) -> bool {
    matches!(
        kind,
        EXTENDS_KW
            | DEFAULT_KW
            | SORTABLE_KW
            | ON_KW
            | IN_KW
            | REVERSE_KW
            | INCREASING_KW
            | DECREASING_KW
    )
}

/// Where every skipping stops.
fn is_boundary(kind: SyntaxKind) -> bool {
    matches!(kind, EOF | L_BRACE | R_BRACE) || begins_item(kind) || begins_statement(kind)
}

impl Parser<'_> {
    /// A name, or a complaint that `what` is missing here.
    pub(super) fn name(&mut self, what: &str) {
        let is_misused =
            self.current().is_reserved() && !connects(self.current()) && !self.is_on_new_line();
        if self.is_at(IDENT) {
            self.start(NAME);
            self.bump();
            self.finish();
        } else if is_misused {
            let word = self.nth_text(0).to_string();
            self.error(
                codes::RESERVED_WORD,
                format!("`{word}` is a reserved word and cannot be {what}"),
                |it| it.hint(format!("choose another name, perhaps `{word}_` or `my_{word}`")),
            );
            self.start(NAME);
            self.bump_as(IDENT);
            self.finish();
        } else {
            let message = format!("expected {what}, found {}", self.found());
            self.error(codes::UNEXPECTED, message, |it| {
                it.label(format!("{what} belongs before this"))
            });
        }
    }

    /// The semicolon behind `what`.
    pub(super) fn semicolon(&mut self, what: &str) {
        if self.eat(SEMICOLON) {
            return;
        }
        let is_on_new_line = self.is_on_new_line();
        let message = match is_on_new_line || is_boundary(self.current()) {
            true => format!("expected `;` after {what}"),
            false => format!("expected `;` after {what}, found {}", self.found()),
        };
        let hint = match self.current() {
            PIPE => Some("`||` is a logical or, and `|RQ|` is the number of threads in RQ"),
            FAT_ARROW => Some("a transfer is a statement of its own: `source => destination;`"),
            COLON => Some("there are no labels and no `? :` here"),
            _ => None,
        };
        self.error_at(self.previous_span().after(), codes::MISSING_SEMICOLON, message, |it| {
            let it = it.label("here");
            match hint {
                Some(hint) => it.hint(hint),
                None => it,
            }
        });
        if !is_on_new_line {
            self.skip_line();
        }
    }

    /// The brace that closes what was opened at `open`.
    pub(super) fn close_brace(&mut self, open: Span, what: &str) {
        if self.eat(R_BRACE) {
            return;
        }
        let message = format!("expected `}}` at the end of {what}, found {}", self.found());
        self.error(codes::UNCLOSED, message, |it| {
            it.label("`}` belongs before this").also(open, "opened here").hint("add a `}`")
        });
    }

    /// The bracket that closes what was opened at `open`, skipping what should not be in between.
    pub(super) fn close_bracket(&mut self, kind: SyntaxKind, open: Span) {
        if self.eat(kind) {
            return;
        }
        let close = kind.text().unwrap_or("");
        let message = format!("expected `{close}`, found {}", self.found());
        self.error(codes::UNCLOSED, message, |it| {
            it.label(format!("`{close}` belongs before this")).also(open, "opened here")
        });
        self.skip_expression();
        self.eat(kind);
    }

    /// Which of the words the word here was meant to be, if it is none by itself.
    pub(super) fn meant(&self, candidates: &[SyntaxKind]) -> Option<SyntaxKind> {
        if !self.is_at(IDENT) {
            return None;
        }
        let word = suggest(self.nth_text(0), candidates.iter().filter_map(|kind| kind.text()))?;
        candidates.iter().copied().find(|kind| kind.text() == Some(word))
    }

    /// Takes the word here for `meant`, and says so.
    pub(super) fn bump_misspelt(&mut self, meant: SyntaxKind) {
        let word = self.nth_text(0).to_string();
        let meant_text = meant.text().unwrap_or("");
        self.error(codes::MISSPELT_WORD, format!("`{word}` means nothing here"), |it| {
            it.hint(format!("did you mean `{meant_text}`?"))
        });
        self.bump_as(meant);
    }

    /// Skips to the end of the statement, which is taken along, or to where another one begins.
    pub(super) fn skip_statement(&mut self) {
        self.skip_while(|parser| !is_boundary(parser.current()));
    }

    /// Skips a statement with all that is nested in it: to a semicolon outside of its braces, or
    /// the last of its braces.
    pub(super) fn skip_nested_statement(&mut self) {
        self.start(ERROR);
        let mut depth = 0usize;
        loop {
            let kind = self.current();
            match kind {
                L_BRACE => depth += 1,
                R_BRACE if depth == 0 => break,
                R_BRACE => depth -= 1,
                EOF => break,
                _ if begins_item(kind) => break,
                _ => {}
            }
            self.bump();
            if depth == 0 && matches!(kind, SEMICOLON | R_BRACE) {
                break;
            }
        }
        self.finish();
    }

    /// Skips what is left of the statement on this line.
    fn skip_line(&mut self) {
        self.skip_while(|parser| !is_boundary(parser.current()) && !parser.is_on_new_line());
    }

    /// Takes tokens into an `ERROR` node: as long as they belong there, and up to a semicolon.
    fn skip_while(&mut self, belongs: impl Fn(&Self) -> bool) {
        if self.eat(SEMICOLON) || !belongs(self) {
            return;
        }
        self.start(ERROR);
        while belongs(self) && !self.is_at(SEMICOLON) {
            self.bump();
        }
        self.finish();
        self.eat(SEMICOLON);
    }

    /// Skips what is left of an expression: up to a bracket that closes something around it, or the
    /// statement's end.
    pub(super) fn skip_expression(&mut self) {
        let mut depth = 0usize;
        let mut is_open = false;
        loop {
            match self.current() {
                L_PAREN | L_BRACKET => depth += 1,
                R_PAREN | R_BRACKET if depth == 0 => break,
                R_PAREN | R_BRACKET => depth -= 1,
                SEMICOLON => break,
                kind if is_boundary(kind) => break,
                _ => {}
            }
            if !is_open {
                self.start(ERROR);
                is_open = true;
            }
            self.bump();
        }
        if is_open {
            self.finish();
        }
    }

    /// Skips a text in braces, nested ones along with it.
    pub(super) fn skip_braces(&mut self) {
        self.start(ERROR);
        let mut depth = 0usize;
        loop {
            match self.current() {
                L_BRACE => depth += 1,
                R_BRACE => depth = depth.saturating_sub(1),
                EOF => break,
                _ => {}
            }
            self.bump();
            if depth == 0 {
                break;
            }
        }
        self.finish();
    }

    /// Skips to the next part of a scheduler, or to the brace that ends it.
    pub(super) fn skip_item(&mut self) {
        self.start(ERROR);
        let mut depth = 0usize;
        loop {
            match self.current() {
                EOF => break,
                L_BRACE => depth += 1,
                R_BRACE if depth == 0 => break,
                R_BRACE => depth -= 1,
                kind if begins_item(kind) => break,
                _ => {}
            }
            self.bump();
        }
        self.finish();
    }

    /// Takes the token here into an `ERROR` node.
    pub(super) fn bump_error(&mut self) {
        self.start(ERROR);
        self.bump();
        self.finish();
    }
}
