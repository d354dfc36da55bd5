//! Expressions.
//!
//! Lowering, which knows the names, decides what the text alone does not: `a.b` may be an
//! attribute or a node's variable, `*n.c` the attribute c of container n's first thread or the
//! first thread of node n's container c, and `f(e)` a call of anything.

use super::{AstNode, Name, child, child_behind, children, choice, nodes, token, tokens};
use crate::syntax::{SyntaxKind, SyntaxNode, SyntaxToken};

nodes! {
    /// `12`, `1.5`, `20ms`, `true`
    Literal(LITERAL);
    /// An identifier that stands for a value, a container or a thread.
    NameExpr(NAME_EXPR);
    /// `BASE[EXPR]`
    IndexExpr(INDEX_EXPR);
    /// `BASE.NAME`: an attribute, or a variable of `GLOBAL` or of a node
    FieldExpr(FIELD_EXPR);
    /// `NAME(EXPR, ..)`
    CallExpr(CALL_EXPR);
    /// `(EXPR, ..)` behind a call's name
    Arguments(ARGUMENTS);
    /// `(EXPR)`
    ParenExpr(PAREN_EXPR);
    /// `-E`, `!E`, `++E`, `--E`
    PrefixExpr(PREFIX_EXPR);
    /// `E++`, `E--`
    PostfixExpr(POSTFIX_EXPR);
    /// `E + E` and so on
    BinaryExpr(BINARY_EXPR);
    /// `E = E`, `E += E` and so on
    AssignExpr(ASSIGN_EXPR);
    /// `E is FAMILY`
    IsExpr(IS_EXPR);
    /// `|CONTAINER|`
    SizeExpr(SIZE_EXPR);
    /// `*CONTAINER`
    FirstExpr(FIRST_EXPR);
    /// `(* TEXT *)`
    VerbatimExpr(VERBATIM_EXPR);
}

choice! {
    Expr {
        Literal(Literal),
        Name(NameExpr),
        Index(IndexExpr),
        Field(FieldExpr),
        Call(CallExpr),
        Paren(ParenExpr),
        Prefix(PrefixExpr),
        Postfix(PostfixExpr),
        Binary(BinaryExpr),
        Assign(AssignExpr),
        Is(IsExpr),
        Size(SizeExpr),
        First(FirstExpr),
        Verbatim(VerbatimExpr),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrefixOp {
    Negate,
    Not,
    Increment,
    Decrement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PostfixOp {
    Increment,
    Decrement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    Greater,
    LessEqual,
    GreaterEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl BinaryOp {
    /// As written in a scheduler.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Or => "||",
            BinaryOp::And => "&&",
            BinaryOp::Equal => "==",
            BinaryOp::NotEqual => "!=",
            BinaryOp::Less => "<",
            BinaryOp::Greater => ">",
            BinaryOp::LessEqual => "<=",
            BinaryOp::GreaterEqual => ">=",
            BinaryOp::Add => "+",
            BinaryOp::Subtract => "-",
            BinaryOp::Multiply => "*",
            BinaryOp::Divide => "/",
            BinaryOp::Remainder => "%",
        }
    }

    fn from_kind(kind: SyntaxKind) -> Option<BinaryOp> {
        Some(match kind {
            SyntaxKind::PIPE_PIPE => BinaryOp::Or,
            SyntaxKind::AMP_AMP => BinaryOp::And,
            SyntaxKind::EQ_EQ => BinaryOp::Equal,
            SyntaxKind::BANG_EQ => BinaryOp::NotEqual,
            SyntaxKind::LT => BinaryOp::Less,
            SyntaxKind::GT => BinaryOp::Greater,
            SyntaxKind::LT_EQ => BinaryOp::LessEqual,
            SyntaxKind::GT_EQ => BinaryOp::GreaterEqual,
            SyntaxKind::PLUS => BinaryOp::Add,
            SyntaxKind::MINUS => BinaryOp::Subtract,
            SyntaxKind::STAR => BinaryOp::Multiply,
            SyntaxKind::SLASH => BinaryOp::Divide,
            SyntaxKind::PERCENT => BinaryOp::Remainder,
            _ => return None,
        })
    }
}

impl Expr {
    /// The expression without the parentheses around it; none if there is nothing in them.
    pub fn without_parens(self) -> Option<Expr> {
        let mut expr = self;
        while let Expr::Paren(paren) = expr {
            expr = paren.inner()?;
        }
        Some(expr)
    }
}

impl NameExpr {
    pub fn token(&self) -> Option<SyntaxToken> {
        token(&self.0, SyntaxKind::IDENT)
    }

    pub fn text(&self) -> String {
        self.0.text().to_string()
    }
}

impl IndexExpr {
    pub fn base(&self) -> Option<Expr> {
        child_behind(&self.0, SyntaxKind::L_BRACKET, 0)
    }

    pub fn index(&self) -> Option<Expr> {
        child_behind(&self.0, SyntaxKind::L_BRACKET, 1)
    }
}

impl FieldExpr {
    pub fn base(&self) -> Option<Expr> {
        child(&self.0)
    }

    pub fn field(&self) -> Option<Name> {
        child(&self.0)
    }

    /// Whether it is `GLOBAL.NAME`, a global of the distributed scheduler.
    pub fn is_global(&self) -> bool {
        matches!(self.base(), Some(Expr::Name(base)) if base.text() == "GLOBAL")
    }
}

impl CallExpr {
    /// What is called.
    pub fn function(&self) -> Option<Expr> {
        child(&self.0)
    }

    pub fn arguments(&self) -> impl Iterator<Item = Expr> + use<> {
        child::<Arguments>(&self.0).into_iter().flat_map(|arguments| children(&arguments.0))
    }
}

impl ParenExpr {
    pub fn inner(&self) -> Option<Expr> {
        child(&self.0)
    }
}

impl PrefixExpr {
    pub fn op(&self) -> Option<PrefixOp> {
        tokens(&self.0).find_map(|token| {
            Some(match token.kind() {
                SyntaxKind::MINUS => PrefixOp::Negate,
                SyntaxKind::BANG => PrefixOp::Not,
                SyntaxKind::PLUS_PLUS => PrefixOp::Increment,
                SyntaxKind::MINUS_MINUS => PrefixOp::Decrement,
                _ => return None,
            })
        })
    }

    pub fn operand(&self) -> Option<Expr> {
        child(&self.0)
    }
}

impl PostfixExpr {
    pub fn op(&self) -> Option<PostfixOp> {
        tokens(&self.0).find_map(|token| {
            Some(match token.kind() {
                SyntaxKind::PLUS_PLUS => PostfixOp::Increment,
                SyntaxKind::MINUS_MINUS => PostfixOp::Decrement,
                _ => return None,
            })
        })
    }

    pub fn operand(&self) -> Option<Expr> {
        child(&self.0)
    }
}

impl BinaryExpr {
    pub fn op_token(&self) -> Option<SyntaxToken> {
        tokens(&self.0).find(|token| BinaryOp::from_kind(token.kind()).is_some())
    }

    pub fn op(&self) -> Option<BinaryOp> {
        self.op_token().and_then(|token| BinaryOp::from_kind(token.kind()))
    }

    pub fn left(&self) -> Option<Expr> {
        child_behind(&self.0, self.op_token()?.kind(), 0)
    }

    pub fn right(&self) -> Option<Expr> {
        child_behind(&self.0, self.op_token()?.kind(), 1)
    }
}

impl AssignExpr {
    pub fn op_token(&self) -> Option<SyntaxToken> {
        tokens(&self.0).find(|token| {
            matches!(
                token.kind(),
                SyntaxKind::EQ
                    | SyntaxKind::STAR_EQ
                    | SyntaxKind::SLASH_EQ
                    | SyntaxKind::PERCENT_EQ
                    | SyntaxKind::PLUS_EQ
                    | SyntaxKind::MINUS_EQ
            )
        })
    }

    /// The operation of `+=` and its like; none for a plain `=`.
    pub fn op(&self) -> Option<BinaryOp> {
        match self.op_token()?.kind() {
            SyntaxKind::STAR_EQ => Some(BinaryOp::Multiply),
            SyntaxKind::SLASH_EQ => Some(BinaryOp::Divide),
            SyntaxKind::PERCENT_EQ => Some(BinaryOp::Remainder),
            SyntaxKind::PLUS_EQ => Some(BinaryOp::Add),
            SyntaxKind::MINUS_EQ => Some(BinaryOp::Subtract),
            _ => None,
        }
    }

    pub fn target(&self) -> Option<Expr> {
        child_behind(&self.0, self.op_token()?.kind(), 0)
    }

    pub fn value(&self) -> Option<Expr> {
        child_behind(&self.0, self.op_token()?.kind(), 1)
    }
}

impl IsExpr {
    pub fn node(&self) -> Option<Expr> {
        child(&self.0)
    }

    pub fn family(&self) -> Option<Name> {
        child(&self.0)
    }
}

impl SizeExpr {
    pub fn container(&self) -> Option<Expr> {
        child(&self.0)
    }
}

impl FirstExpr {
    pub fn container(&self) -> Option<Expr> {
        child(&self.0)
    }
}

impl VerbatimExpr {
    /// What stands between `(*` and `*)`, unread.
    pub fn text(&self) -> String {
        let text = token(&self.0, SyntaxKind::VERBATIM_EXPR_TEXT);
        text.map(|token| super::between_marks(token.text())).unwrap_or_default()
    }
}
