//! The kinds of tokens and nodes in the tree.
//!
//! Invariant: [`SyntaxKind::ALL`] holds each kind at the index of its own number, so that a tree's
//! raw numbers turn back into kinds without a cast.

/// Rowan's view of a kind, a node and a token of this language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Language {}

pub type SyntaxNode = rowan::SyntaxNode<Language>;
pub type SyntaxToken = rowan::SyntaxToken<Language>;
pub type SyntaxElement = rowan::SyntaxElement<Language>;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $(= $text:literal)?),* $(,)?) => {
        /// What a token or a node of the tree is.
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum SyntaxKind {
            $($(#[$doc])* $kind),*
        }

        impl SyntaxKind {
            const ALL: &[SyntaxKind] = &[$(SyntaxKind::$kind),*];

            /// What a token of this kind is always written as, if it is.
            pub fn text(self) -> Option<&'static str> {
                match self {
                    $($(SyntaxKind::$kind => Some($text),)?)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    // Text without meaning.
    WHITESPACE,
    COMMENT,
    /// Characters that start no token.
    UNKNOWN,
    /// The end of the text; never in a tree.
    EOF,

    // Tokens with a text of their own.
    IDENT,
    INT,
    FLOAT,
    TIME,
    STRING,
    /// `(* .. *)`
    VERBATIM_EXPR_TEXT,
    /// `{* .. *}`
    VERBATIM_STMT_TEXT,

    L_BRACE = "{",
    R_BRACE = "}",
    L_PAREN = "(",
    R_PAREN = ")",
    L_BRACKET = "[",
    R_BRACKET = "]",
    SEMICOLON = ";",
    COMMA = ",",
    COLON = ":",
    DOT = ".",
    PIPE = "|",
    STAR = "*",
    SLASH = "/",
    PERCENT = "%",
    PLUS = "+",
    MINUS = "-",
    PLUS_PLUS = "++",
    MINUS_MINUS = "--",
    BANG = "!",
    EQ = "=",
    STAR_EQ = "*=",
    SLASH_EQ = "/=",
    PERCENT_EQ = "%=",
    PLUS_EQ = "+=",
    MINUS_EQ = "-=",
    EQ_EQ = "==",
    BANG_EQ = "!=",
    LT = "<",
    GT = ">",
    LT_EQ = "<=",
    GT_EQ = ">=",
    PIPE_PIPE = "||",
    AMP_AMP = "&&",
    FAT_ARROW = "=>",

    // Reserved words.
    SCHEDULER_KW = "scheduler",
    PARTIAL_KW = "partial",
    EXTENDS_KW = "extends",
    THREAD_KW = "thread",
    THREADIMPORTS_KW = "threadimports",
    DATA_KW = "data",
    IMPORTS_KW = "imports",
    INVARIANT_KW = "invariant",
    EVENT_KW = "event",
    QUERY_KW = "query",
    BEFORE_KW = "before",
    AFTER_KW = "after",
    FIXED_KW = "fixed",
    DEFAULT_KW = "default",
    CONST_KW = "const",
    INT_KW = "int",
    FLOAT_KW = "float",
    TIME_KW = "time",
    THREADREF_KW = "threadref",
    QUEUE_KW = "queue",
    STACK_KW = "stack",
    PQUEUE_KW = "pqueue",
    PSTACK_KW = "pstack",
    REVERSE_KW = "reverse",
    INCREASING_KW = "increasing",
    DECREASING_KW = "decreasing",
    SORTABLE_KW = "sortable",
    ON_KW = "on",
    IF_KW = "if",
    ELSE_KW = "else",
    WHILE_KW = "while",
    DO_KW = "do",
    FOR_KW = "for",
    FOREACH_KW = "foreach",
    IN_KW = "in",
    CONTINUE_KW = "continue",
    BREAK_KW = "break",
    RETURN_KW = "return",
    DISPATCH_KW = "dispatch",
    DESTROY_KW = "destroy",
    TRUE_KW = "true",
    FALSE_KW = "false",

    // Words that mean something only where no other reading is left; identifiers elsewhere.
    TUNABLE_KW = "tunable",
    PERCPU_KW = "percpu",
    ALARM_KW = "alarm",
    AT_KW = "at",
    PREEMPT_KW = "preempt",
    IS_KW = "is",
    DISTRIBUTED_KW = "distributed",
    NODEFAMILIES_KW = "nodefamilies",
    NODES_KW = "nodes",
    NODE_KW = "node",
    GLOBAL_KW = "global",
    ARRIVAL_KW = "arrival",
    DEPARTURE_KW = "departure",
    EXPECTS_KW = "expects",
    ATOMIC_KW = "atomic",
    SUSPEND_KW = "suspend",
    RESUME_KW = "resume",
    WITHIN_KW = "within",
    TO_KW = "to",
    BY_KW = "by",
    OWNER_KW = "owner",
    LOADER_KW = "loader",
    TABLE_KW = "table",
    KERNEL_KW = "kernel",

    // Files and their parts.
    ROOT,
    SCHEDULER,
    DISTRIBUTED,
    ASPECT_FILE,
    THREAD_SECTION,
    THREAD_IMPORTS,
    DATA_SECTION,
    IMPORTS,
    INVARIANT,
    HANDLER,
    ASPECT,
    PARAMETER,
    IMPORT,
    IMPORT_RANGE,
    SUPPLIER,
    DECLARATION,
    TYPE,
    DECLARATOR,
    ARRAY_SIZE,
    SORT_CLAUSE,
    INITIALIZER,
    NAME,
    NODE_FAMILIES,
    NODE_FAMILY,
    NODES,
    NODE_DECLARATION,
    GLOBALS,
    ARRIVAL,
    DEPARTURE,

    // Statements; a DECLARATION is one too.
    COMPOUND,
    EXPR_STMT,
    IF_STMT,
    WHILE_STMT,
    DO_STMT,
    FOR_STMT,
    FOREACH_STMT,
    CONTINUE_STMT,
    BREAK_STMT,
    RETURN_STMT,
    TRANSFER_STMT,
    DISPATCH_STMT,
    DESTROY_STMT,
    ALARM_STMT,
    PREEMPT_STMT,
    ATOMIC_STMT,
    COMMAND_STMT,
    VERBATIM_STMT,

    // Expressions.
    LITERAL,
    NAME_EXPR,
    INDEX_EXPR,
    FIELD_EXPR,
    CALL_EXPR,
    ARGUMENTS,
    PAREN_EXPR,
    PREFIX_EXPR,
    POSTFIX_EXPR,
    BINARY_EXPR,
    ASSIGN_EXPR,
    IS_EXPR,
    SIZE_EXPR,
    FIRST_EXPR,
    VERBATIM_EXPR,

    /// Text that the grammar has no place for.
    ERROR,
}

impl SyntaxKind {
    /// Space and comments.
    pub fn is_trivia(self) -> bool {
        matches!(self, SyntaxKind::WHITESPACE | SyntaxKind::COMMENT)
    }

    /// `int`, `queue` and so on.
    pub fn is_type(self) -> bool {
        (SyntaxKind::INT_KW..=SyntaxKind::PSTACK_KW).contains(&self)
    }

    /// A word that can be no name.
    pub fn is_reserved(self) -> bool {
        (SyntaxKind::SCHEDULER_KW..=SyntaxKind::FALSE_KW).contains(&self)
    }

    /// The reserved word written so, if it is one.
    pub fn reserved(word: &str) -> Option<SyntaxKind> {
        Self::all_reserved().find(|kind| kind.text() == Some(word))
    }

    pub(crate) fn all_reserved() -> impl Iterator<Item = SyntaxKind> {
        Self::ALL.iter().copied().filter(|kind| kind.is_reserved())
    }
}

impl rowan::Language for Language {
    type Kind = SyntaxKind;

    fn kind_from_raw(raw: rowan::SyntaxKind) -> SyntaxKind {
        SyntaxKind::ALL.get(usize::from(raw.0)).copied().unwrap_or(SyntaxKind::ERROR)
    }

    fn kind_to_raw(kind: SyntaxKind) -> rowan::SyntaxKind {
        rowan::SyntaxKind(kind as u16)
    }
}

#[cfg(test)]
mod tests {
    use rowan::Language as _;

    use super::*;

    #[test]
    fn a_kind_survives_the_way_through_its_number() {
        for (index, &kind) in SyntaxKind::ALL.iter().enumerate() {
            assert_eq!(kind as usize, index);
            assert_eq!(Language::kind_from_raw(Language::kind_to_raw(kind)), kind);
        }
    }
}
