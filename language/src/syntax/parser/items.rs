//! Files, sections, declarations, handlers.

use super::Parser;
use super::recovery::begins_item;
use crate::diagnostic::codes::syntax as codes;
use crate::source::Span;
use crate::syntax::{SyntaxKind, SyntaxKind::*};

const TYPES: [SyntaxKind; 8] =
    [INT_KW, FLOAT_KW, TIME_KW, THREADREF_KW, QUEUE_KW, STACK_KW, PQUEUE_KW, PSTACK_KW];

/// Words before a `{`.
const SECTIONS: [SyntaxKind; 4] = [THREAD_KW, THREADIMPORTS_KW, DATA_KW, IMPORTS_KW];

/// Words behind `by`.
const SUPPLIERS: [SyntaxKind; 4] = [OWNER_KW, LOADER_KW, TABLE_KW, KERNEL_KW];

/// Words before a name.
const HANDLERS: [SyntaxKind; 5] = [EVENT_KW, QUERY_KW, BEFORE_KW, AFTER_KW, INVARIANT_KW];

// Files.
impl Parser<'_> {
    pub(super) fn file(&mut self) {
        // Not `start`: the root takes in the spaces before the first token too.
        self.builder.start_node(super::raw(ROOT));
        self.open.push(0);
        while !self.file_part() {
            let message = format!("expected a scheduler, found {}", self.found());
            self.error(codes::NO_SCHEDULER, message, |it| {
                it.hint(
                    "a file begins with `scheduler NAME {`, or with `before` and `after` \
                     if it holds aspects",
                )
            });
            self.skip_to_file_part();
            if self.is_at(EOF) {
                break;
            }
        }
        if !self.is_at(EOF) {
            let message = format!("{} stands behind the end of the scheduler", self.found());
            self.error(codes::TRAILING_TEXT, message, |it| {
                it.hint("a file holds one scheduler; perhaps a `}` before this is one too many")
            });
            self.start(ERROR);
            while !self.is_at(EOF) {
                self.bump();
            }
            self.finish();
        }
        self.emit_spaces();
        self.finish();
    }

    /// The scheduler or the aspects; false if neither begins here.
    fn file_part(&mut self) -> bool {
        const HEADS: [SyntaxKind; 3] = [SCHEDULER_KW, PARTIAL_KW, DISTRIBUTED_KW];
        let is_head =
            |n: usize, parser: &Self| matches!(parser.nth(n), IDENT | SCHEDULER_KW | PARTIAL_KW);
        match self.current() {
            SCHEDULER_KW | PARTIAL_KW => self.scheduler(),
            IDENT if self.nth_is_word(0, DISTRIBUTED_KW) => self.distributed(),
            kind if begins_item(kind) => self.aspect_file(),
            IDENT => match self.meant(&HEADS) {
                Some(DISTRIBUTED_KW) if is_head(1, self) => self.distributed(),
                Some(SCHEDULER_KW | PARTIAL_KW) if is_head(1, self) => self.scheduler(),
                _ => return false,
            },
            _ => return false,
        }
        true
    }

    fn skip_to_file_part(&mut self) {
        if self.is_at(EOF) {
            return;
        }
        self.start(ERROR);
        self.bump();
        while !matches!(self.current(), EOF | SCHEDULER_KW | PARTIAL_KW)
            && !self.nth_is_word(0, DISTRIBUTED_KW)
            && !begins_item(self.current())
        {
            self.bump();
        }
        self.finish();
    }

    fn scheduler(&mut self) {
        self.start(SCHEDULER);
        while self.is_at(PARTIAL_KW) || self.meant(&[SCHEDULER_KW, PARTIAL_KW]) == Some(PARTIAL_KW)
        {
            self.word(PARTIAL_KW);
        }
        self.word(SCHEDULER_KW);
        self.name("the scheduler's name");
        if self.is_at(EXTENDS_KW) || self.meant(&[EXTENDS_KW]).is_some() {
            self.word(EXTENDS_KW);
            self.name("the name of the scheduler to extend");
        }
        let open = self.open_brace("the scheduler");
        self.items(open);
        self.finish();
    }

    fn aspect_file(&mut self) {
        self.start(ASPECT_FILE);
        while !self.is_at(EOF) {
            if self.is_at(R_BRACE) {
                self.stray_brace();
            } else {
                self.item();
            }
        }
        self.finish();
    }

    /// Takes that word, spelt right or wrong, or says that it is missing.
    pub(super) fn word(&mut self, word: SyntaxKind) {
        if self.is_at(word) {
            self.bump();
        } else if self.nth_is_word(0, word) {
            self.bump_as(word);
        } else if self.meant(&[word]).is_some() {
            self.bump_misspelt(word);
        } else {
            self.expect(word, "here");
        }
    }

    /// The brace before a body; what should not stand before it is skipped. Gives the brace's
    /// place.
    pub(super) fn open_brace(&mut self, what: &str) -> Span {
        if !self.is_at(L_BRACE) {
            self.expect(L_BRACE, &format!("before the body of {what}"));
            if !matches!(self.current(), EOF | R_BRACE) && !begins_item(self.current()) {
                self.start(ERROR);
                while !matches!(self.current(), EOF | L_BRACE | R_BRACE)
                    && !begins_item(self.current())
                {
                    self.bump();
                }
                self.finish();
            }
        }
        let span = self.span();
        self.eat(L_BRACE);
        span
    }
}

// Parts of a scheduler.
impl Parser<'_> {
    fn items(&mut self, open: Span) {
        loop {
            match self.current() {
                EOF => break,
                R_BRACE if begins_item(self.nth(1)) => self.stray_brace(),
                R_BRACE => break,
                _ => self.item(),
            }
        }
        self.close_brace(open, "the scheduler");
    }

    fn stray_brace(&mut self) {
        self.error(codes::TRAILING_TEXT, "this `}` closes nothing", |it| {
            it.label("one too many").hint("remove it, or look for a missing `{` above")
        });
        self.bump_error();
    }

    fn item(&mut self) {
        self.is_too_deep = false;
        let candidates = if self.nth(1) == L_BRACE { &SECTIONS[..] } else { &HANDLERS[..] };
        let kind = self.meant(candidates).unwrap_or(self.current());
        match kind {
            THREAD_KW => self.section(THREAD_SECTION, kind, Self::declaration),
            DATA_KW => self.section(DATA_SECTION, kind, Self::declaration),
            THREADIMPORTS_KW => self.section(THREAD_IMPORTS, kind, Self::import),
            IMPORTS_KW => self.section(IMPORTS, kind, Self::import),
            INVARIANT_KW => self.handler(INVARIANT, kind, "the container's name"),
            EVENT_KW => self.handler(HANDLER, kind, "the event's name"),
            QUERY_KW => self.handler(HANDLER, kind, "the query's name"),
            BEFORE_KW | AFTER_KW => self.handler(ASPECT, kind, "the event's name"),
            _ if self.begins_declaration() => {
                self.error(codes::UNEXPECTED, "a declaration cannot stand here", |it| {
                    it.hint(
                        "variables and containers are declared in `data { .. }`, attributes \
                         in `thread { .. }`",
                    )
                });
                self.declaration();
            }
            _ => {
                let message = format!("expected a section or a handler, found {}", self.found());
                self.error(codes::UNEXPECTED, message, |it| {
                    it.hint(
                        "`thread`, `threadimports`, `data`, `imports` or `invariant`; `event`, \
                         `query`, `before` or `after`",
                    )
                });
                self.skip_item();
            }
        }
    }

    /// `WORD { .. }`, made of declarations or imports.
    pub(super) fn section(&mut self, node: SyntaxKind, word: SyntaxKind, entry: fn(&mut Self)) {
        self.start(node);
        self.word(word);
        let open = self.open_brace(&format!("`{}`", word.text().unwrap_or("")));
        self.entries(open, entry);
        self.finish();
    }

    fn entries(&mut self, open: Span, entry: fn(&mut Self)) {
        loop {
            match self.current() {
                EOF | R_BRACE => break,
                kind if begins_item(kind) => break,
                L_BRACE => {
                    self.error(codes::UNEXPECTED, "a block cannot stand here", |it| {
                        it.hint("statements belong into handlers")
                    });
                    self.skip_braces();
                }
                _ => {
                    let before = self.at;
                    entry(self);
                    if self.at == before {
                        self.bump_error();
                        self.skip_statement();
                    }
                }
            }
        }
        self.close_brace(open, "the section");
    }

    /// `WORD NAME [(..)] { .. }`
    pub(super) fn handler(&mut self, node: SyntaxKind, word: SyntaxKind, what: &str) {
        self.start(node);
        self.word(word);
        self.name(what);
        if self.is_at(L_PAREN) {
            self.parameter();
        }
        self.body("the handler");
        self.finish();
    }

    pub(super) fn parameter(&mut self) {
        self.start(PARAMETER);
        let open = self.span();
        self.bump();
        if self.is_at(R_PAREN) {
            self.error(codes::UNEXPECTED, "there is nothing between these parentheses", |it| {
                it.hint(
                    "a handler without a parameter is written without parentheses: `event \
                     schedule { .. }`",
                )
            });
        } else {
            self.eat(FIXED_KW);
            if self.current().is_type() && self.nth(1) == IDENT {
                self.error(codes::UNEXPECTED, "a parameter has no type", |it| {
                    it.hint("write its name alone: it always names a thread")
                });
                self.bump_error();
            }
            self.name("the parameter's name");
        }
        if self.is_at(COMMA) {
            self.error(codes::UNEXPECTED, "a handler has one parameter at most", |it| {
                it.label("too much from here on")
            });
        }
        self.close_bracket(R_PAREN, open);
        self.finish();
    }

    pub(super) fn body(&mut self, what: &str) {
        if self.is_at(L_BRACE) {
            return self.compound();
        }
        if self.is_at(VERBATIM_STMT_TEXT) {
            self.error(codes::UNEXPECTED, "a body cannot be verbatim text alone", |it| {
                it.hint("put braces around it: `{ {* .. *} }`")
            });
            return self.bump_error();
        }
        self.expect(L_BRACE, &format!("before the body of {what}"));
        self.skip_statement();
        if self.is_at(L_BRACE) {
            self.compound();
        }
    }
}

// Declarations.
impl Parser<'_> {
    /// Whether a declaration begins here. `percpu` and `tunable` are names unless a type follows.
    pub(super) fn begins_declaration(&self) -> bool {
        let mut n = 0;
        while self.nth(n) == CONST_KW
            || self.nth_is_word(n, PERCPU_KW)
            || self.nth_is_word(n, TUNABLE_KW)
        {
            n += 1;
        }
        self.nth(n).is_type() || (n > 0 && self.nth(0) == CONST_KW)
    }

    pub(super) fn declaration(&mut self) {
        self.start(DECLARATION);
        self.storage();
        if self.ty() {
            self.declarators();
            self.semicolon("the declaration");
        } else {
            self.skip_statement();
        }
        self.finish();
    }

    fn storage(&mut self) {
        loop {
            if self.is_at(CONST_KW) {
                self.bump();
            } else if self.nth_is_word(0, PERCPU_KW) && self.nth(1) != SEMICOLON {
                self.bump_as(PERCPU_KW);
            } else if self.nth_is_word(0, TUNABLE_KW) && self.nth(1) != SEMICOLON {
                self.bump_as(TUNABLE_KW);
            } else {
                break;
            }
        }
    }

    /// A type; false if there is nothing like one.
    fn ty(&mut self) -> bool {
        let is_type = self.current().is_type();
        let may_be_type = is_type || (self.is_at(IDENT) && self.nth(1) == IDENT);
        if !may_be_type {
            let message = format!("expected a type, found {}", self.found());
            self.error(codes::UNEXPECTED, message, |it| {
                it.hint("a declaration begins with its type: `int x;`")
            });
            return false;
        }
        self.start(TYPE);
        if is_type {
            self.bump();
        } else if let Some(meant) = self.meant(&TYPES) {
            self.bump_misspelt(meant);
        } else {
            let message = format!("there is no type {}", self.found());
            self.error(codes::UNKNOWN_TYPE, message, |it| {
                it.hint("types are int, float, time, threadref, queue, stack, pqueue and pstack")
            });
            self.bump();
        }
        self.finish();
        true
    }

    pub(super) fn declarators(&mut self) {
        self.declarator();
        while self.eat(COMMA) {
            self.declarator();
        }
    }

    fn declarator(&mut self) {
        const ORDERS: [SyntaxKind; 4] = [SORTABLE_KW, REVERSE_KW, INCREASING_KW, DECREASING_KW];
        self.start(DECLARATOR);
        self.name("the declared name");
        if self.is_at(L_BRACKET) {
            self.start(ARRAY_SIZE);
            let open = self.span();
            self.bump();
            self.expr();
            self.close_bracket(R_BRACKET, open);
            self.finish();
        }
        if ORDERS.contains(&self.current()) || self.meant(&ORDERS).is_some() {
            self.start(SORT_CLAUSE);
            let order = self.meant(&ORDERS).unwrap_or(self.current());
            if order != SORTABLE_KW {
                self.word(order);
            }
            self.word(SORTABLE_KW);
            self.word(ON_KW);
            self.name("the attribute to sort by");
            self.finish();
        }
        if self.is_at(EQ) {
            self.start(INITIALIZER);
            self.bump();
            self.expr();
            self.finish();
        }
        self.finish();
    }

    fn import(&mut self) {
        self.start(IMPORT);
        if self.ty() {
            self.name("the imported variable's name");
            if self.is_at(DEFAULT_KW) || self.meant(&[DEFAULT_KW]).is_some() {
                self.word(DEFAULT_KW);
                self.expr();
            } else {
                let message = format!("expected `default` and a value, found {}", self.found());
                self.error(codes::IMPORT_WITHOUT_DEFAULT, message, |it| {
                    it.label("`default VALUE` belongs before this")
                        .hint("the default holds until the application has registered the variable")
                });
                if self.eat(EQ) {
                    self.expr();
                }
            }
            self.import_terms();
            self.semicolon("the import");
        } else {
            self.skip_statement();
        }
        self.finish();
    }
    /// `[within LOW to HIGH] [by SUPPLIER]`
    fn import_terms(&mut self) {
        if self.nth_is_word(0, WITHIN_KW) {
            self.start(IMPORT_RANGE);
            self.bump_as(WITHIN_KW);
            self.expr();
            self.word(TO_KW);
            self.expr();
            self.finish();
        }
        if self.nth_is_word(0, BY_KW) {
            self.start(SUPPLIER);
            self.bump_as(BY_KW);
            self.supplier();
            self.finish();
        }
    }

    fn supplier(&mut self) {
        let written = SUPPLIERS.iter().copied().find(|kind| self.nth_is_word(0, *kind));
        match written.or_else(|| self.meant(&SUPPLIERS)) {
            Some(supplier) => self.word(supplier),
            None => {
                let message = format!("expected a supplier of the import, found {}", self.found());
                self.error(codes::UNKNOWN_SUPPLIER, message, |it| {
                    it.hint("`owner`, `loader`, `table` or `kernel`")
                });
                if self.is_at(IDENT) {
                    self.bump_error();
                }
            }
        }
    }
}
