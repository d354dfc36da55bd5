//! Statements.

use super::{
    AstNode, Declaration, Expr, Name, child, child_behind, children, choice, nodes, token,
};
use crate::syntax::{SyntaxKind, SyntaxNode};

nodes! {
    /// `{ .. }`
    Compound(COMPOUND);
    /// `EXPR;` or `;` alone
    ExprStmt(EXPR_STMT);
    /// `if (EXPR) STATEMENT [else STATEMENT]`
    IfStmt(IF_STMT);
    /// `while (EXPR) STATEMENT`
    WhileStmt(WHILE_STMT);
    /// `do STATEMENT while (EXPR);`
    DoStmt(DO_STMT);
    /// `for (EXPR; EXPR; EXPR) STATEMENT`
    ForStmt(FOR_STMT);
    /// `foreach NAME in CONTAINER STATEMENT`
    ForeachStmt(FOREACH_STMT);
    /// `continue;`
    ContinueStmt(CONTINUE_STMT);
    /// `break;`
    BreakStmt(BREAK_STMT);
    /// `return [EXPR];`
    ReturnStmt(RETURN_STMT);
    /// `SOURCE => DESTINATION;`
    TransferStmt(TRANSFER_STMT);
    /// `dispatch CONTAINER [for EXPR];`
    DispatchStmt(DISPATCH_STMT);
    /// `destroy CONTAINER;`
    DestroyStmt(DESTROY_STMT);
    /// `alarm THREAD at EXPR;`
    AlarmStmt(ALARM_STMT);
    /// `preempt EXPR [at EXPR];`
    PreemptStmt(PREEMPT_STMT);
    /// `atomic { .. }`
    AtomicStmt(ATOMIC_STMT);
    /// `suspend NODE.CONTAINER;` or `resume NODE.CONTAINER;`
    CommandStmt(COMMAND_STMT);
    /// `{* TEXT *}`
    VerbatimStmt(VERBATIM_STMT);
}

choice! {
    Statement {
        Declaration(Declaration),
        Compound(Compound),
        Expr(ExprStmt),
        If(IfStmt),
        While(WhileStmt),
        Do(DoStmt),
        For(ForStmt),
        Foreach(ForeachStmt),
        Continue(ContinueStmt),
        Break(BreakStmt),
        Return(ReturnStmt),
        Transfer(TransferStmt),
        Dispatch(DispatchStmt),
        Destroy(DestroyStmt),
        Alarm(AlarmStmt),
        Preempt(PreemptStmt),
        Atomic(AtomicStmt),
        Command(CommandStmt),
        Verbatim(VerbatimStmt),
    }
}

impl Compound {
    /// Statements, and the declarations before and between them.
    pub fn statements(&self) -> impl Iterator<Item = Statement> + use<> {
        children(&self.0)
    }
}

impl ExprStmt {
    /// None for an empty statement.
    pub fn expr(&self) -> Option<Expr> {
        child(&self.0)
    }
}

impl IfStmt {
    pub fn condition(&self) -> Option<Expr> {
        child(&self.0)
    }

    pub fn then_branch(&self) -> Option<Statement> {
        child_behind(&self.0, SyntaxKind::ELSE_KW, 0)
    }

    pub fn else_branch(&self) -> Option<Statement> {
        child_behind(&self.0, SyntaxKind::ELSE_KW, 1)
    }
}

impl AtomicStmt {
    pub fn body(&self) -> Option<Compound> {
        child(&self.0)
    }
}

impl CommandStmt {
    /// Whether the threads are to be suspended; otherwise they are to be resumed.
    pub fn suspends(&self) -> bool {
        token(&self.0, SyntaxKind::SUSPEND_KW).is_some()
    }

    /// The container whose threads are meant, and its node.
    pub fn target(&self) -> Option<Expr> {
        child(&self.0)
    }
}

impl WhileStmt {
    pub fn condition(&self) -> Option<Expr> {
        child(&self.0)
    }

    pub fn body(&self) -> Option<Statement> {
        child(&self.0)
    }
}

impl DoStmt {
    pub fn body(&self) -> Option<Statement> {
        child(&self.0)
    }

    pub fn condition(&self) -> Option<Expr> {
        child(&self.0)
    }
}

impl ForStmt {
    pub fn init(&self) -> Option<Expr> {
        child_behind(&self.0, SyntaxKind::SEMICOLON, 0)
    }

    pub fn condition(&self) -> Option<Expr> {
        child_behind(&self.0, SyntaxKind::SEMICOLON, 1)
    }

    pub fn step(&self) -> Option<Expr> {
        child_behind(&self.0, SyntaxKind::SEMICOLON, 2)
    }

    pub fn body(&self) -> Option<Statement> {
        child(&self.0)
    }
}

impl ForeachStmt {
    /// The name of each thread in turn.
    pub fn variable(&self) -> Option<Name> {
        child(&self.0)
    }

    pub fn container(&self) -> Option<Expr> {
        child(&self.0)
    }

    pub fn body(&self) -> Option<Statement> {
        child(&self.0)
    }
}

impl ReturnStmt {
    pub fn value(&self) -> Option<Expr> {
        child(&self.0)
    }
}

impl TransferStmt {
    pub fn source(&self) -> Option<Expr> {
        child_behind(&self.0, SyntaxKind::FAT_ARROW, 0)
    }

    pub fn destination(&self) -> Option<Expr> {
        child_behind(&self.0, SyntaxKind::FAT_ARROW, 1)
    }
}

impl DispatchStmt {
    pub fn container(&self) -> Option<Expr> {
        child_behind(&self.0, SyntaxKind::FOR_KW, 0)
    }

    /// How long the thread may stay at most; none if it may stay as long as it likes.
    pub fn duration(&self) -> Option<Expr> {
        child_behind(&self.0, SyntaxKind::FOR_KW, 1)
    }
}

impl DestroyStmt {
    pub fn container(&self) -> Option<Expr> {
        child(&self.0)
    }
}

impl AlarmStmt {
    pub fn thread(&self) -> Option<Expr> {
        child_behind(&self.0, SyntaxKind::AT_KW, 0)
    }

    /// When, on the clock that `now` reads.
    pub fn time(&self) -> Option<Expr> {
        child_behind(&self.0, SyntaxKind::AT_KW, 1)
    }
}

impl PreemptStmt {
    /// Which CPU shall choose again.
    pub fn cpu(&self) -> Option<Expr> {
        child_behind(&self.0, SyntaxKind::AT_KW, 0)
    }

    /// When, on the clock that `now` reads; none: at once.
    pub fn time(&self) -> Option<Expr> {
        child_behind(&self.0, SyntaxKind::AT_KW, 1)
    }
}

impl VerbatimStmt {
    /// What stands between `{*` and `*}`, unread.
    pub fn text(&self) -> String {
        let text = token(&self.0, SyntaxKind::VERBATIM_STMT_TEXT);
        text.map(|token| super::between_marks(token.text())).unwrap_or_default()
    }
}
