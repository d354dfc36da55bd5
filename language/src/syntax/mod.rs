//! Text to tree: the lexer, a parser that never fails, the lossless tree, and the typed view over it.
//!
//! Invariants: the tree's text is the input, byte for byte, whatever the input; no tree is higher than [`MAX_HEIGHT`], so
//! a pass may walk it by recursion; a node begins and ends with a token that means something, never with a space or
//! a comment.

pub mod ast;
mod kind;

pub use kind::{Language, SyntaxElement, SyntaxKind, SyntaxNode, SyntaxToken};

/// The greatest number of nodes from the root to a leaf.
pub const MAX_HEIGHT: u32 = 256;
