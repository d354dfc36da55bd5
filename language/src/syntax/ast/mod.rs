//! The typed view over the tree: one type per production of the grammar, one method per part.
//!
//! A part that the grammar demands may still be missing where the parser recovered from an error,
//! so most parts are optional; in the tree of a text without errors every demanded part is there.
//! Text between the parts is not seen here.

mod expressions;
mod items;
mod literals;
mod statements;

pub use expressions::*;
pub use items::*;
pub use literals::LiteralValue;
use literals::between_marks;
pub(crate) use literals::{LiteralError, UNITS};
pub use statements::*;

use rowan::TextRange;

use super::{SyntaxElement, SyntaxKind, SyntaxNode, SyntaxToken};
use crate::source::{SourceId, Span};

/// A node of a known kind.
pub trait AstNode: Sized {
    fn cast(node: SyntaxNode) -> Option<Self>;

    fn syntax(&self) -> &SyntaxNode;

    fn range(&self) -> TextRange {
        self.syntax().text_range()
    }

    /// The node's place, given the file that its tree was parsed from.
    fn span(&self, source: SourceId) -> Span {
        Span::new(source, self.range())
    }
}

/// Declares node types: `Name(KIND)`, each with its documentation.
macro_rules! nodes {
    ($($(#[$doc:meta])* $name:ident($kind:ident);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $name(SyntaxNode);

        impl AstNode for $name {
            fn cast(node: SyntaxNode) -> Option<Self> {
                (node.kind() == SyntaxKind::$kind).then_some($name(node))
            }

            fn syntax(&self) -> &SyntaxNode {
                &self.0
            }
        }
    )*};
}

/// Declares a choice between node types.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$variant_doc:meta])* $variant:ident($node:ident),)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant($node)),*
        }

        impl AstNode for $name {
            fn cast(node: SyntaxNode) -> Option<Self> {
                $(
                    if let Some(it) = $node::cast(node.clone()) {
                        return Some($name::$variant(it));
                    }
                )*
                None
            }

            fn syntax(&self) -> &SyntaxNode {
                match self {
                    $($name::$variant(it) => it.syntax()),*
                }
            }
        }

        $(
            impl From<$node> for $name {
                fn from(it: $node) -> Self {
                    $name::$variant(it)
                }
            }
        )*
    };
}

pub(crate) use {choice, nodes};

/// The first part of that type.
fn child<N: AstNode>(node: &SyntaxNode) -> Option<N> {
    node.children().find_map(N::cast)
}

/// The parts of that type, in order.
fn children<N: AstNode>(node: &SyntaxNode) -> impl Iterator<Item = N> + use<N> {
    node.children().filter_map(N::cast)
}

/// The first token of that kind.
fn token(node: &SyntaxNode, kind: SyntaxKind) -> Option<SyntaxToken> {
    tokens(node).find(|token| token.kind() == kind)
}

/// The node's own tokens, in order.
fn tokens(node: &SyntaxNode) -> impl Iterator<Item = SyntaxToken> + use<> {
    node.children_with_tokens().filter_map(SyntaxElement::into_token)
}

/// The parts of that type behind the `n`th token of that kind (from 1) and before the next one.
fn child_behind<N: AstNode>(node: &SyntaxNode, kind: SyntaxKind, n: usize) -> Option<N> {
    let mut seen = 0;
    for element in node.children_with_tokens() {
        match element {
            SyntaxElement::Token(token) if token.kind() == kind => seen += 1,
            SyntaxElement::Node(part) if seen == n => {
                if let Some(part) = N::cast(part) {
                    return Some(part);
                }
            }
            _ => {}
        }
        if seen > n {
            break;
        }
    }
    None
}
