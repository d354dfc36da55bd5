//! Expressions, with C's precedence.

use super::Parser;
use crate::diagnostic::codes::syntax as codes;
use crate::syntax::{SyntaxKind, SyntaxKind::*};

/// How tightly an operator binds what stands left and right of it: C's levels, doubled; left lower
/// than right for those that group to the left.
struct Binding {
    left: u8,
    right: u8,
    node: SyntaxKind,
}

const LOOSEST: u8 = 0;
const ASSIGNMENT: Binding = Binding { left: 2, right: 1, node: ASSIGN_EXPR };
const OR: Binding = Binding { left: 3, right: 4, node: BINARY_EXPR };
const AND: Binding = Binding { left: 5, right: 6, node: BINARY_EXPR };
const EQUALITY: Binding = Binding { left: 7, right: 8, node: BINARY_EXPR };
const RELATION: Binding = Binding { left: 9, right: 10, node: BINARY_EXPR };
const FAMILY: Binding = Binding { left: 9, right: 10, node: IS_EXPR };
const SUM: Binding = Binding { left: 11, right: 12, node: BINARY_EXPR };
const PRODUCT: Binding = Binding { left: 13, right: 14, node: BINARY_EXPR };
const PREFIX: u8 = 15;

impl Parser<'_> {
    pub(super) fn begins_expression(&self) -> bool {
        matches!(
            self.current(),
            IDENT
                | INT
                | FLOAT
                | TIME
                | STRING
                | TRUE_KW
                | FALSE_KW
                | VERBATIM_EXPR_TEXT
                | L_PAREN
                | PIPE
                | STAR
                | MINUS
                | BANG
                | PLUS_PLUS
                | MINUS_MINUS
        )
    }

    pub(super) fn expr(&mut self) {
        self.expr_above(LOOSEST);
    }

    /// An expression without operators between operands.
    pub(super) fn operand(&mut self) {
        self.expr_above(PREFIX);
    }

    /// An expression whose operators bind tighter than `level`. May leave no node, after an error.
    fn expr_above(&mut self, level: u8) {
        if !self.has_room() {
            return self.give_up();
        }
        let start = self.checkpoint();
        self.unary();
        while let Some(binding) = self.infix().filter(|binding| binding.left > level) {
            if !self.has_room_around() {
                return self.give_up();
            }
            self.start_around(start, binding.node);
            if self.is_at(PIPE) {
                self.bump_two_bars();
                self.expr_above(binding.right);
            } else if binding.node == IS_EXPR {
                self.bump_as(IS_KW);
                self.name("a node family");
            } else {
                self.bump();
                self.expr_above(binding.right);
            }
            self.finish();
        }
    }

    /// What is left of an expression that is nested too deeply, unread.
    fn give_up(&mut self) {
        self.too_deep();
        self.beside_operand(Self::skip_expression);
    }

    /// Lets `error` add its node behind an operand, which stays the one to build around.
    fn beside_operand(&mut self, error: fn(&mut Self)) {
        let height = self.completed;
        error(self);
        self.completed = self.completed.max(height);
    }

    fn infix(&self) -> Option<Binding> {
        Some(match self.current() {
            EQ | STAR_EQ | SLASH_EQ | PERCENT_EQ | PLUS_EQ | MINUS_EQ => ASSIGNMENT,
            PIPE if self.is_at_two_bars() => OR,
            AMP_AMP => AND,
            EQ_EQ | BANG_EQ => EQUALITY,
            LT | GT | LT_EQ | GT_EQ => RELATION,
            IDENT if self.nth_is_word(0, IS_KW) && self.nth(1) == IDENT => FAMILY,
            PLUS | MINUS => SUM,
            STAR | SLASH | PERCENT => PRODUCT,
            _ => return None,
        })
    }

    fn unary(&mut self) {
        match self.current() {
            MINUS | BANG | PLUS_PLUS | MINUS_MINUS => {
                self.start(PREFIX_EXPR);
                self.bump();
                self.expr_above(PREFIX);
                self.finish();
            }
            _ => self.postfix(),
        }
    }

    /// A primary expression and what stands directly behind it.
    fn postfix(&mut self) {
        let start = self.checkpoint();
        self.primary();
        loop {
            let node = match self.current() {
                L_BRACKET => INDEX_EXPR,
                DOT => FIELD_EXPR,
                L_PAREN => CALL_EXPR,
                PLUS_PLUS | MINUS_MINUS => POSTFIX_EXPR,
                VERBATIM_EXPR_TEXT => return self.verbatim_for_arguments(),
                _ => return,
            };
            if !self.has_room_around() || !self.has_room() {
                return self.give_up();
            }
            self.start_around(start, node);
            match node {
                INDEX_EXPR => self.index(),
                FIELD_EXPR => {
                    self.bump();
                    self.name("the attribute's name");
                }
                CALL_EXPR => self.arguments(),
                _ => self.bump(),
            }
            self.finish();
        }
    }

    /// `[EXPR]`
    fn index(&mut self) {
        let open = self.span();
        self.bump();
        self.expr();
        self.close_bracket(R_BRACKET, open);
    }

    /// `(EXPR, ..)`
    fn arguments(&mut self) {
        self.start(ARGUMENTS);
        let open = self.span();
        self.bump();
        if !self.is_at(R_PAREN) {
            self.expr();
            while self.eat(COMMA) {
                self.expr();
            }
        }
        self.close_bracket(R_PAREN, open);
        self.finish();
    }

    /// `f(*C.x)`, which reads as a name and verbatim text.
    fn verbatim_for_arguments(&mut self) {
        self.error(codes::VERBATIM_ARGUMENT, "verbatim text cannot follow an operand", |it| {
            it.label("`(*` opens verbatim text").hint(
                "if it is an argument that begins with `*`, put a space between the two \
                 characters: `( *`",
            )
        });
        self.beside_operand(Self::bump_error);
    }

    fn primary(&mut self) {
        match self.current() {
            INT | FLOAT | TIME | TRUE_KW | FALSE_KW => self.leaf_expr(LITERAL),
            IDENT => self.leaf_expr(NAME_EXPR),
            VERBATIM_EXPR_TEXT => self.leaf_expr(VERBATIM_EXPR),
            L_PAREN => {
                self.start(PAREN_EXPR);
                let open = self.span();
                self.bump();
                self.expr();
                self.close_bracket(R_PAREN, open);
                self.finish();
            }
            STAR => self.first(),
            PIPE if self.is_at_two_bars() => self.or_without_left(),
            PIPE => self.size(),
            _ => self.no_expression(),
        }
    }

    fn leaf_expr(&mut self, kind: SyntaxKind) {
        self.start(kind);
        self.bump();
        self.finish();
    }

    /// `*CONTAINER`: binds tighter than an attribute's dot, so that `*C.x` is about C's first
    /// thread.
    fn first(&mut self) {
        self.start(FIRST_EXPR);
        self.bump();
        if self.is_at(IDENT) {
            self.container();
        } else {
            let message = format!("expected a container after `*`, found {}", self.found());
            self.error(codes::NOT_A_CONTAINER, message, |it| {
                it.hint("`*RQ` is the first thread of RQ, `*RQ.x` is that thread's attribute x")
            });
            if self.begins_expression() && !self.is_at(STAR) {
                self.operand();
            }
        }
        self.finish();
    }

    /// `C`, `C[EXPR]` or either of them behind `GLOBAL.`
    fn container(&mut self) {
        let start = self.checkpoint();
        let is_global = self.nth_text(0) == "GLOBAL" && self.nth(1) == DOT;
        self.leaf_expr(NAME_EXPR);
        if is_global {
            self.start_around(start, FIELD_EXPR);
            self.bump();
            self.name("the global's name");
            self.finish();
        }
        if self.is_at(L_BRACKET) && self.has_room() {
            self.start_around(start, INDEX_EXPR);
            self.index();
            self.finish();
        }
    }

    /// `|CONTAINER|`
    fn size(&mut self) {
        self.start(SIZE_EXPR);
        let open = self.span();
        self.bump();
        if self.is_at(IDENT) {
            self.operand();
            if !self.eat(PIPE) {
                let message = format!("expected `|`, found {}", self.found());
                self.error(codes::UNCLOSED, message, |it| {
                    it.label("`|` belongs before this")
                        .also(open, "opened here")
                        .hint("between bars stands one container: `|RQ|`")
                });
                self.skip_expression();
            }
        } else {
            let message = format!("expected a container between bars, found {}", self.found());
            self.error(codes::NOT_A_CONTAINER, message, |it| {
                it.hint("`|RQ|` is the number of threads in RQ")
            });
            if self.nth(1) == PIPE {
                self.bump_error();
                self.bump();
            } else {
                self.skip_expression();
            }
        }
        self.finish();
    }

    fn or_without_left(&mut self) {
        self.error(codes::OR_WITHOUT_LEFT, "`||` has nothing on its left", |it| {
            it.label("a logical or").hint(
                "`|RQ|` is the number of threads in one container; there are no absolute values",
            )
        });
        self.skip_expression();
    }

    fn no_expression(&mut self) {
        let message = format!("expected an expression, found {}", self.found());
        let hint = match self.current() {
            STRING => Some("there are no strings"),
            PLUS => Some("write the number without `+`"),
            EQ_EQ | LT | GT | LT_EQ | GT_EQ | BANG_EQ | AMP_AMP | SLASH | PERCENT => {
                Some("the operator needs something on its left")
            }
            _ => None,
        };
        self.error(codes::EXPECTED_EXPRESSION, message, |it| match hint {
            Some(hint) => it.hint(hint),
            None => it,
        });
        if matches!(self.current(), STRING | PLUS) {
            self.bump_error();
        }
    }
}
