//! Text to tokens.
//!
//! Invariants: the tokens cover the text without gap or overlap, whatever it holds; the time taken
//! is linear in it. A bar is always a token of its own: whether two of them are an *or* or the
//! sizes of two containers is for the parser to say.

use super::SyntaxKind::{self, *};
use crate::diagnostic::{Diagnostic, codes::syntax as codes};
use crate::source::{SourceId, Span};

/// A token: its kind and the bytes that it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub kind: SyntaxKind,
    pub start: u32,
    pub end: u32,
}

/// The tokens of a text shorter than 4 GiB, and what is wrong with them: at most `limit`
/// diagnostics.
pub(super) fn lex(source: SourceId, text: &str, limit: usize) -> (Vec<Token>, Vec<Diagnostic>) {
    let mut lexer = Lexer {
        source,
        text,
        at: 0,
        limit,
        tokens: Vec::new(),
        diagnostics: Vec::new(),
        last: EOF,
        before_last: EOF,
        missing_end: [false; 3],
        lookahead: 2 * text.len(),
    };
    while lexer.at < text.len() {
        let start = lexer.at;
        let kind = lexer.token();
        lexer.tokens.push(Token { kind, start: start as u32, end: lexer.at as u32 });
        if !kind.is_trivia() {
            lexer.before_last = lexer.last;
            lexer.last = kind;
        }
    }
    (lexer.tokens, lexer.diagnostics)
}

struct Lexer<'a> {
    source: SourceId,
    text: &'a str,
    at: usize,
    limit: usize,
    tokens: Vec<Token>,
    diagnostics: Vec<Diagnostic>,
    /// The last two tokens that are no space.
    last: SyntaxKind,
    before_last: SyntaxKind,
    /// For each of [`ENDS`], whether a search has found none up to the end of the text: none need
    /// be tried again.
    missing_end: [bool; 3],
    /// Bytes that searches for balanced parentheses may still read in vain.
    lookahead: usize,
}

/// What ends text that is not read.
const ENDS: [&str; 3] = ["*/", "*)", "*}"];
const COMMENT_END: usize = 0;
const EXPR_END: usize = 1;
const STMT_END: usize = 2;

/// Operators, the longer ones first.
const OPERATORS: &[SyntaxKind] = &[
    STAR_EQ,
    SLASH_EQ,
    PERCENT_EQ,
    PLUS_EQ,
    MINUS_EQ,
    EQ_EQ,
    BANG_EQ,
    LT_EQ,
    GT_EQ,
    AMP_AMP,
    FAT_ARROW,
    PLUS_PLUS,
    MINUS_MINUS,
    L_BRACE,
    R_BRACE,
    L_PAREN,
    R_PAREN,
    L_BRACKET,
    R_BRACKET,
    SEMICOLON,
    COMMA,
    COLON,
    DOT,
    PIPE,
    STAR,
    SLASH,
    PERCENT,
    PLUS,
    MINUS,
    BANG,
    EQ,
    LT,
    GT,
];

/// Operators of C that the language lacks: what to read them as, and what to write.
const FOREIGN: [(&str, SyntaxKind, &str); 7] = [
    ("->", DOT, "an attribute is written with a dot: `t.attribute`"),
    ("<<", UNKNOWN, "multiply by a power of two"),
    (">>", UNKNOWN, "divide by a power of two"),
    ("&", AMP_AMP, "a logical and is written `&&`"),
    ("?", UNKNOWN, "use `if` and `else`"),
    ("^", UNKNOWN, "there are no operators on bits"),
    ("~", UNKNOWN, "there are no operators on bits"),
];

impl Lexer<'_> {
    fn token(&mut self) -> SyntaxKind {
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next() else { return EOF };
        match first {
            // A byte order mark, as some editors put in front of every text.
            '\u{feff}' if self.at == 0 => self.take(WHITESPACE, |c| c == '\u{feff}'),
            c if c.is_whitespace() => self.take(WHITESPACE, |c| c.is_whitespace()),
            '/' if rest.starts_with("//") => self.take(COMMENT, |c| c != '\n'),
            '/' if rest.starts_with("/*") => self.block_comment(),
            '(' if rest.starts_with("(*") && !self.opens_condition() => {
                self.verbatim(VERBATIM_EXPR_TEXT, EXPR_END)
            }
            '{' if rest.starts_with("{*") => self.verbatim(VERBATIM_STMT_TEXT, STMT_END),
            '"' => self.string(),
            c if is_name_start(c) => self.word(),
            c if c.is_ascii_digit() => self.number(),
            '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => self.number(),
            _ => self.operator(),
        }
    }

    /// Whether a parenthesis here belongs to a condition or a handler's parameter, and so is never
    /// verbatim text.
    fn opens_condition(&self) -> bool {
        matches!(self.last, IF_KW | WHILE_KW | FOR_KW | FOREACH_KW)
            || self.last == IDENT
                && matches!(self.before_last, EVENT_KW | QUERY_KW | BEFORE_KW | AFTER_KW)
    }

    fn take(&mut self, kind: SyntaxKind, belongs: impl Fn(char) -> bool) -> SyntaxKind {
        let rest = &self.text[self.at..];
        self.at += rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        kind
    }

    fn block_comment(&mut self) -> SyntaxKind {
        let start = self.at;
        match self.find_end(COMMENT_END) {
            Some(end) => {
                self.at = end;
                COMMENT
            }
            None => {
                self.at = self.text.len();
                self.report(start, start + 2, |span| {
                    Diagnostic::new(codes::UNTERMINATED_COMMENT, span, "this comment does not end")
                        .label("begins here")
                        .hint("close it with `*/`")
                });
                // Not a comment, so that the end of the file is not reported too.
                UNKNOWN
            }
        }
    }

    /// Text of another language. If it does not end, what follows can still be read: behind the
    /// bracket of an expression, which often was meant as one; behind the line of a statement.
    fn verbatim(&mut self, kind: SyntaxKind, end: usize) -> SyntaxKind {
        let start = self.at;
        if let Some(end) = self.find_end(end) {
            self.at = end;
            return kind;
        }
        self.report(start, start + 2, |span| {
            Diagnostic::new(codes::UNTERMINATED_VERBATIM, span, "this verbatim text does not end")
                .label("verbatim text begins here")
                .hint(format!(
                    "close it with `{}`, or put a space between the two characters if \
                     none is meant",
                    ENDS[end]
                ))
        });
        if kind == VERBATIM_STMT_TEXT {
            return self.take(kind, |c| c != '\n');
        }
        self.at += 1;
        L_PAREN
    }

    /// The byte behind the end mark, searched for behind the two characters here. In an expression
    /// the mark stands outside all parentheses opened in it, if there is such a one.
    fn find_end(&mut self, end: usize) -> Option<usize> {
        if self.missing_end[end] {
            return None;
        }
        let body = self.at + 2;
        if end == EXPR_END
            && let Some(found) = self.balanced_end(body)
        {
            return Some(found);
        }
        let found = self.text[body..].find(ENDS[end]).map(|offset| body + offset + 2);
        self.missing_end[end] = found.is_none();
        found
    }

    /// The byte behind the `*)` that balances the parentheses opened from `body` on. Strings,
    /// characters and comments of C are skipped.
    fn balanced_end(&mut self, body: usize) -> Option<usize> {
        let end = self.text.len().min(body + self.lookahead);
        let rest = self.text.as_bytes().get(body..end)?;
        let found = balanced_end(rest);
        if let Err(read) = found {
            self.lookahead -= read;
        }
        found.ok().map(|offset| body + offset)
    }

    fn string(&mut self) -> SyntaxKind {
        let start = self.at;
        self.at += 1;
        self.take(STRING, |c| c != '"' && c != '\n');
        if self.text[self.at..].starts_with('"') {
            self.at += 1;
        } else {
            // Read on behind what was probably meant to be the name.
            self.at = start + 1;
            self.take(STRING, |c| !c.is_whitespace() && !":;{}".contains(c));
            self.report(start, self.at, |span| {
                Diagnostic::new(codes::UNTERMINATED_STRING, span, "this file name does not end")
                    .label("no closing quote on this line")
                    .hint("close it with `\"`")
            });
        }
        STRING
    }

    fn word(&mut self) -> SyntaxKind {
        let start = self.at;
        self.take(IDENT, is_name_part);
        SyntaxKind::reserved(&self.text[start..self.at]).unwrap_or(IDENT)
    }

    /// `12`, `0x1f`, `1.5`, `.5`, `1e-3`, `20ms`: what the letters behind it mean is looked at
    /// later.
    fn number(&mut self) -> SyntaxKind {
        let digit = |c: char| c.is_ascii_digit();
        let bytes = self.text.as_bytes();
        let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
        if at(self.at) == b'0' && matches!(at(self.at + 1), b'x' | b'X') {
            return self.take(INT, is_name_part);
        }
        let mut kind = INT;
        self.take(INT, digit);
        if at(self.at) == b'.'
            && !is_name_start(char::from(at(self.at + 1)))
            && at(self.at + 1) != b'.'
        {
            kind = FLOAT;
            self.at += 1;
            self.take(FLOAT, digit);
        }
        if matches!(at(self.at), b'e' | b'E') {
            let sign = usize::from(matches!(at(self.at + 1), b'+' | b'-'));
            if at(self.at + 1 + sign).is_ascii_digit() {
                kind = FLOAT;
                self.at += 1 + sign;
                self.take(FLOAT, digit);
            }
        }
        let end = self.at;
        self.take(TIME, is_name_part);
        if self.at > end { TIME } else { kind }
    }

    fn operator(&mut self) -> SyntaxKind {
        let start = self.at;
        let rest = &self.text[start..];
        if let Some(&(symbol, read_as, hint)) =
            FOREIGN.iter().find(|(symbol, ..)| rest.starts_with(symbol))
            && !rest.starts_with("&&")
        {
            self.at += symbol.len();
            self.report(start, self.at, |span| {
                Diagnostic::new(
                    codes::FOREIGN_OPERATOR,
                    span,
                    format!("there is no operator `{symbol}`"),
                )
                .hint(hint)
            });
            return read_as;
        }
        let text = |kind: &SyntaxKind| kind.text().unwrap_or("");
        if let Some(&kind) = OPERATORS.iter().find(|kind| rest.starts_with(text(kind))) {
            self.at += text(&kind).len();
            return kind;
        }
        self.take(UNKNOWN, is_foreign);
        let length = rest[..self.at - start].chars().count();
        self.report(start, self.at, |span| {
            let what = if length == 1 { "this character means" } else { "these characters mean" };
            Diagnostic::new(codes::UNKNOWN_CHARACTER, span, format!("{what} nothing here"))
                .hint("names are made of the letters a-z and A-Z, digits and `_`")
        });
        UNKNOWN
    }

    fn report(&mut self, start: usize, end: usize, diagnostic: impl FnOnce(Span) -> Diagnostic) {
        if self.diagnostics.len() < self.limit {
            let span = Span { source: self.source, start: start as u32, end: end as u32 };
            self.diagnostics.push(diagnostic(span));
        }
    }
}

/// The offset behind the `*)` outside all parentheses of C's text; where there is none, how much
/// was read to find that out.
fn balanced_end(text: &[u8]) -> Result<usize, usize> {
    let starts = |at: usize, what: &[u8]| text[at..].starts_with(what);
    let mut open = 0u32;
    let mut at = 0;
    // Up to where no string, character or comment ends that would begin here.
    let mut unclosed = [0; 3];
    while at < text.len() {
        match text[at] {
            b'*' if open == 0 && starts(at, b"*)") => return Ok(at + 2),
            b'(' => open += 1,
            b')' if open == 0 => return Err(at),
            b')' => open -= 1,
            quote @ (b'"' | b'\'') => {
                let unclosed = &mut unclosed[usize::from(quote == b'"')];
                if at >= *unclosed {
                    match closing_quote(text, at, quote) {
                        Ok(end) => at = end,
                        Err(line_end) => *unclosed = line_end,
                    }
                }
            }
            b'/' if starts(at, b"/*") && at >= unclosed[2] => {
                match text[at + 2..].windows(2).position(|pair| pair == b"*/") {
                    Some(end) => at += end + 3,
                    None => unclosed[2] = text.len(),
                }
            }
            b'/' if starts(at, b"//") => {
                let end = text[at..].iter().position(|&byte| byte == b'\n');
                at = end.map_or(at, |end| at + end);
            }
            _ => {}
        }
        at += 1;
    }
    Err(text.len())
}

/// Where the string or the character that opens at `open` ends; the end of its line if not on it.
fn closing_quote(text: &[u8], open: usize, quote: u8) -> Result<usize, usize> {
    let mut at = open + 1;
    while at < text.len() && text[at] != b'\n' {
        match text[at] {
            b'\\' => at += 1,
            byte if byte == quote => return Ok(at),
            _ => {}
        }
        at += 1;
    }
    Err(at)
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_name_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// A character that no token begins with.
fn is_foreign(c: char) -> bool {
    !c.is_whitespace() && !is_name_part(c) && !"{}()[];,:.|*/%+-!=<>&\"?^~".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tokens that are no space, each with its text.
    fn tokens(text: &str) -> Vec<(SyntaxKind, &str)> {
        let (tokens, _) = lex(SourceId(0), text, 10);
        let meaningful = tokens.iter().filter(|token| token.kind != WHITESPACE);
        meaningful
            .map(|token| (token.kind, &text[token.start as usize..token.end as usize]))
            .collect()
    }

    #[test]
    fn a_star_behind_a_parenthesis_opens_verbatim_text_except_in_conditions() {
        assert_eq!(tokens("(* rand() *)"), [(VERBATIM_EXPR_TEXT, "(* rand() *)")]);
        let kinds = |text: &str| tokens(text).into_iter().map(|(kind, _)| kind).collect::<Vec<_>>();
        for word in ["if", "while", "for", "foreach"] {
            assert_eq!(kinds(&format!("{word} (*RQ == t *) "))[1..3], [L_PAREN, STAR], "{word}");
        }
        assert_eq!(kinds("event schedule(*x *)")[2..4], [L_PAREN, STAR]);
        assert_eq!(kinds("return (*x *)"), [RETURN_KW, VERBATIM_EXPR_TEXT]);
        assert_eq!(kinds("( *x )"), [L_PAREN, STAR, IDENT, R_PAREN]);
    }

    #[test]
    fn a_verbatim_expression_ends_outside_its_own_parentheses() {
        for text in [
            "(* f((char*)(long)x) *)",
            "(* field && 0 == strncmp((char*)(long)field,\n    \"x*)\", 1) *)",
            "(* f(')', '\\'') + g(\"\\\")\") *)",
            "(* f( /* *) ( */ 1) // *) (\n *)",
        ] {
            assert_eq!(tokens(text), [(VERBATIM_EXPR_TEXT, text)]);
        }
        // Without a balanced end the first mark counts, and C's own compiler says what is missing.
        let unbalanced = "(* f((1 *) + 2";
        assert_eq!(tokens(unbalanced)[0], (VERBATIM_EXPR_TEXT, "(* f((1 *)"));
        // An open parenthesis reaches no further than it must.
        assert_eq!(tokens("(* f(1 *) (* g() *)").len(), 2);
    }

    #[test]
    fn verbatim_text_without_an_end_gives_its_bracket_back() {
        assert_eq!(
            tokens("x = (*RQ;"),
            [(IDENT, "x"), (EQ, "="), (L_PAREN, "("), (STAR, "*"), (IDENT, "RQ"), (SEMICOLON, ";")]
        );
    }

    #[test]
    fn numbers_take_their_letters_along() {
        assert_eq!(
            tokens("1.5ms 0x1F 1e-3 .5 7. 3sec 1.x"),
            [
                (TIME, "1.5ms"),
                (INT, "0x1F"),
                (FLOAT, "1e-3"),
                (FLOAT, ".5"),
                (FLOAT, "7."),
                (TIME, "3sec"),
                (INT, "1"),
                (DOT, "."),
                (IDENT, "x"),
            ]
        );
    }

    #[test]
    fn bars_are_never_joined() {
        let bars = |text| tokens(text).iter().filter(|(kind, _)| *kind == PIPE).count();
        assert_eq!(bars("a|||RQ|"), 4);
    }
}
