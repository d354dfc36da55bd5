//! Statements.

use super::Parser;
use super::recovery::{begins_item, begins_statement};
use crate::diagnostic::codes::syntax as codes;
use crate::syntax::{SyntaxKind, SyntaxKind::*};

impl Parser<'_> {
    /// `{ .. }`, at its brace.
    pub(super) fn compound(&mut self) {
        self.start(COMPOUND);
        let open = self.span();
        self.bump();
        while !matches!(self.current(), EOF | R_BRACE) && !begins_item(self.current()) {
            let before = self.at;
            self.statement();
            if self.at == before {
                self.bump_error();
            }
        }
        self.close_brace(open, "the block");
        self.finish();
    }

    fn statement(&mut self) {
        if !self.has_room() {
            self.too_deep();
            return self.skip_nested_statement();
        }
        match self.current() {
            L_BRACE => self.compound(),
            VERBATIM_STMT_TEXT => self.leaf(VERBATIM_STMT),
            IF_KW => self.if_statement(),
            WHILE_KW => self.while_statement(),
            DO_KW => self.do_statement(),
            FOR_KW => self.for_statement(),
            FOREACH_KW => self.foreach_statement(),
            CONTINUE_KW => self.jump_statement(CONTINUE_STMT, "`continue`"),
            BREAK_KW => self.jump_statement(BREAK_STMT, "`break`"),
            RETURN_KW => self.return_statement(),
            DISPATCH_KW => self.dispatch_statement(),
            DESTROY_KW => self.destroy_statement(),
            SEMICOLON => self.leaf(EXPR_STMT),
            ELSE_KW => self.lone_else(),
            IDENT => self.statement_of_word(),
            _ if self.begins_declaration() => self.declaration(),
            _ if self.begins_expression() => self.expression_statement(),
            _ => {
                let message = format!("expected a statement, found {}", self.found());
                self.error(codes::UNEXPECTED, message, |it| it);
                self.skip_statement();
            }
        }
    }

    /// The statement that a condition or a loop governs.
    fn branch(&mut self) {
        if self.begins_declaration() {
            self.error(
                codes::LONE_DECLARATION,
                "this declaration is of no use: nothing can follow it here",
                |it| {
                    it.label("its name ends with this branch").hint("put braces around the branch")
                },
            );
        }
        match self.current() {
            R_BRACE | EOF | ELSE_KW => {
                let message = format!("expected a statement, found {}", self.found());
                self.error(codes::UNEXPECTED, message, |it| {
                    it.hint("an empty statement is written `;`")
                });
            }
            kind if begins_item(kind) => {
                let message = format!("expected a statement, found {}", self.found());
                self.error(codes::UNEXPECTED, message, |it| it);
            }
            _ => self.statement(),
        }
    }

    /// A node of one token.
    fn leaf(&mut self, kind: SyntaxKind) {
        self.start(kind);
        self.bump();
        self.finish();
    }

    fn lone_else(&mut self) {
        self.error(codes::UNEXPECTED, "this `else` belongs to no `if`", |it| {
            it.hint(
                "only one statement, or one block in braces, may stand between `if (..)` \
                 and `else`",
            )
        });
        self.bump_error();
    }
}

// Conditions and loops.
impl Parser<'_> {
    /// `(EXPR)`, behind a word that asks for it.
    fn condition(&mut self, word: &str) {
        let open = self.span();
        if self.eat(L_PAREN) {
            self.expr();
            return self.close_bracket(R_PAREN, open);
        }
        self.error(
            codes::MISSING_PARENTHESES,
            format!("the condition of `{word}` needs parentheses"),
            |it| it.label("`(` belongs before this").hint(format!("write `{word} (..)`")),
        );
        if self.begins_expression() {
            self.expr();
        }
    }

    fn if_statement(&mut self) {
        self.start(IF_STMT);
        self.bump_word(IF_KW);
        self.condition("if");
        self.branch();
        let is_misspelt = self.meant(&[ELSE_KW]).is_some()
            && (matches!(self.nth(1), IDENT | L_BRACE) || begins_statement(self.nth(1)));
        if is_misspelt {
            self.bump_misspelt(ELSE_KW);
            self.branch();
        } else if self.eat(ELSE_KW) {
            self.branch();
        }
        self.finish();
    }

    fn while_statement(&mut self) {
        self.start(WHILE_STMT);
        self.bump_word(WHILE_KW);
        self.condition("while");
        self.branch();
        self.finish();
    }

    fn do_statement(&mut self) {
        self.start(DO_STMT);
        self.bump_word(DO_KW);
        self.branch();
        if self.expect(WHILE_KW, "at the end of `do`") {
            self.condition("while");
            self.semicolon("`do .. while (..)`");
        }
        self.finish();
    }

    fn for_statement(&mut self) {
        self.start(FOR_STMT);
        self.bump_word(FOR_KW);
        let open = self.span();
        if self.expect(L_PAREN, "after `for`") {
            if self.begins_declaration() {
                self.error(codes::LONE_DECLARATION, "a variable cannot be declared here", |it| {
                    it.hint("declare it before the loop")
                });
                self.declaration();
            } else {
                self.for_part(SEMICOLON);
                self.expect(SEMICOLON, "between the parts of `for`");
            }
            self.for_part(SEMICOLON);
            self.expect(SEMICOLON, "between the parts of `for`");
            self.for_part(R_PAREN);
            self.close_bracket(R_PAREN, open);
        }
        self.branch();
        self.finish();
    }

    fn for_part(&mut self, end: SyntaxKind) {
        if !self.is_at(end) {
            self.expr();
        }
    }

    /// `foreach NAME in CONTAINER STATEMENT`; parentheses may stand around the head.
    fn foreach_statement(&mut self) {
        self.start(FOREACH_STMT);
        self.bump_word(FOREACH_KW);
        let open = self.span();
        let has_parentheses = self.eat(L_PAREN);
        if self.is_at(THREADREF_KW) {
            self.error(codes::UNEXPECTED, "the variable of `foreach` has no type", |it| {
                it.hint("write its name alone")
            });
            self.bump_error();
        }
        self.name("the name of each thread in turn");
        self.expect(IN_KW, "and a container");
        if self.begins_expression() {
            self.operand();
        } else {
            let message = format!("expected a container, found {}", self.found());
            self.error(codes::UNEXPECTED, message, |it| it);
        }
        if has_parentheses {
            self.close_bracket(R_PAREN, open);
        }
        self.branch();
        self.finish();
    }

    /// Takes a word of a statement, spelt right or wrong.
    fn bump_word(&mut self, word: SyntaxKind) {
        if self.is_at(word) { self.bump() } else { self.bump_misspelt(word) }
    }
}

// Simple statements.
impl Parser<'_> {
    fn jump_statement(&mut self, node: SyntaxKind, what: &str) {
        self.start(node);
        self.bump();
        self.semicolon(what);
        self.finish();
    }

    fn return_statement(&mut self) {
        self.start(RETURN_STMT);
        self.bump_word(RETURN_KW);
        if self.begins_expression() {
            self.expr();
        }
        self.semicolon("`return`");
        self.finish();
    }

    fn dispatch_statement(&mut self) {
        self.start(DISPATCH_STMT);
        self.bump_word(DISPATCH_KW);
        self.expr();
        if self.eat(FOR_KW) {
            self.expr();
        }
        self.semicolon("`dispatch`");
        self.finish();
    }

    fn destroy_statement(&mut self) {
        self.start(DESTROY_STMT);
        self.bump_word(DESTROY_KW);
        self.expr();
        self.semicolon("`destroy`");
        self.finish();
    }

    /// `alarm THREAD at TIME;`
    fn alarm_statement(&mut self) {
        self.start(ALARM_STMT);
        self.bump_as(ALARM_KW);
        self.expr();
        if self.nth_is_word(0, AT_KW) {
            self.bump_as(AT_KW);
            self.expr();
        } else {
            let message = format!("expected `at` and a time, found {}", self.found());
            self.error(codes::UNEXPECTED, message, |it| it.hint("write `alarm t at now + 5ms;`"));
        }
        self.semicolon("`alarm`");
        self.finish();
    }

    /// `preempt CPU [at TIME];`
    fn preempt_statement(&mut self) {
        self.start(PREEMPT_STMT);
        self.bump_as(PREEMPT_KW);
        self.expr();
        if self.nth_is_word(0, AT_KW) {
            self.bump_as(AT_KW);
            self.expr();
        }
        self.semicolon("`preempt`");
        self.finish();
    }

    /// `atomic { .. }`
    fn atomic_statement(&mut self) {
        self.start(ATOMIC_STMT);
        self.bump_as(ATOMIC_KW);
        self.compound();
        self.finish();
    }

    /// `suspend NODE.CONTAINER;`, `resume NODE.CONTAINER;`
    fn command_statement(&mut self, word: SyntaxKind) {
        self.start(COMMAND_STMT);
        self.bump_as(word);
        self.expr();
        self.semicolon("the command");
        self.finish();
    }

    /// A statement that begins with a word that is not reserved: a new word where no other reading
    /// is left, a misspelt one, or an expression.
    fn statement_of_word(&mut self) {
        if self.begins_declaration() {
            return self.declaration();
        }
        if self.nth_is_word(0, ALARM_KW) && self.nth(1) == IDENT {
            return self.alarm_statement();
        }
        if self.nth_is_word(0, PREEMPT_KW) && self.next_is_operand() {
            return self.preempt_statement();
        }
        if self.nth_is_word(0, ATOMIC_KW) && self.nth(1) == L_BRACE {
            return self.atomic_statement();
        }
        for word in [SUSPEND_KW, RESUME_KW] {
            if self.nth_is_word(0, word) && self.nth(1) == IDENT && self.nth(2) == DOT {
                return self.command_statement(word);
            }
        }
        match self.nth(1) {
            IDENT if !self.nth_is_word(1, IS_KW) => self.statement_of_two_words(),
            L_PAREN => match self.meant(&[IF_KW, WHILE_KW, FOR_KW, FOREACH_KW]) {
                Some(IF_KW) => self.if_statement(),
                Some(WHILE_KW) => self.while_statement(),
                Some(FOR_KW) => self.for_statement(),
                Some(_) => self.foreach_statement(),
                None => self.expression_statement(),
            },
            _ => self.expression_statement(),
        }
    }

    /// Two names in a row are no expression: the first one was meant to be something else.
    fn statement_of_two_words(&mut self) {
        const WORDS: [SyntaxKind; 12] = [
            DISPATCH_KW,
            DESTROY_KW,
            RETURN_KW,
            FOREACH_KW,
            INT_KW,
            FLOAT_KW,
            TIME_KW,
            THREADREF_KW,
            QUEUE_KW,
            STACK_KW,
            PQUEUE_KW,
            PSTACK_KW,
        ];
        match self.meant(&WORDS) {
            Some(DISPATCH_KW) => self.dispatch_statement(),
            Some(DESTROY_KW) => self.destroy_statement(),
            Some(RETURN_KW) => self.return_statement(),
            Some(FOREACH_KW) => self.foreach_statement(),
            Some(_) => self.declaration(),
            None => self.expression_statement(),
        }
    }

    /// Whether the next token can only begin an operand, and is no operator.
    fn next_is_operand(&self) -> bool {
        let is_size = self.nth(1) == PIPE && self.nth(2) == IDENT && self.nth(3) == PIPE;
        is_size
            || matches!(
                self.nth(1),
                IDENT | INT | TRUE_KW | FALSE_KW | BANG | L_PAREN | VERBATIM_EXPR_TEXT
            )
    }

    /// An expression, or a transfer.
    fn expression_statement(&mut self) {
        let start = self.checkpoint();
        self.expr();
        if self.is_at(FAT_ARROW) && self.has_room_around() {
            self.start_around(start, TRANSFER_STMT);
            self.bump();
            self.expr();
            self.semicolon("the transfer");
        } else {
            self.start_around(start, EXPR_STMT);
            self.semicolon("the expression");
        }
        self.finish();
    }
}
