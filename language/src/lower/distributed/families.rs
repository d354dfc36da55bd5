//! What `is` says of a node in the code behind it: in `if (n is web) .. else ..` the node is of
//! family web in the one branch, and of another family in the other.

use crate::lower::Lowering;
use crate::syntax::ast::{self, Expr as Syntax, PrefixOp};

/// A set of families. Those from the 64th on are always in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FamilySet(u64);

impl FamilySet {
    pub const ALL: FamilySet = FamilySet(u64::MAX);

    pub fn has(self, family: usize) -> bool {
        family >= 64 || self.0 >> family & 1 == 1
    }

    fn only(family: usize) -> FamilySet {
        if family < 64 { FamilySet(1 << family) } else { FamilySet::ALL }
    }

    fn without(family: usize) -> FamilySet {
        if family < 64 { FamilySet(!(1 << family)) } else { FamilySet::ALL }
    }

    fn and(self, other: FamilySet) -> FamilySet {
        FamilySet(self.0 & other.0)
    }
}

impl Lowering {
    /// Lowers what runs where the condition holds, or where it fails.
    pub(in crate::lower) fn knowing<T>(
        &mut self,
        condition: Option<&Syntax>,
        holds: bool,
        build: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let depth = self.distribution.as_ref().map_or(0, |it| it.known.len());
        if let Some(condition) = condition {
            self.learn_families(condition, holds);
        }
        let built = build(self);
        if let Some(distribution) = &mut self.distribution {
            distribution.known.truncate(depth);
        }
        built
    }

    fn learn_families(&mut self, condition: &Syntax, holds: bool) {
        let Some(distribution) = &mut self.distribution else { return };
        match condition {
            Syntax::Paren(paren) => {
                if let Some(inner) = paren.inner() {
                    self.learn_families(&inner, holds);
                }
            }
            Syntax::Prefix(prefix) if prefix.op() == Some(PrefixOp::Not) => {
                if let Some(operand) = prefix.operand() {
                    self.learn_families(&operand, !holds);
                }
            }
            Syntax::Binary(binary) => {
                let both = match binary.op() {
                    Some(ast::BinaryOp::And) => holds,
                    Some(ast::BinaryOp::Or) => !holds,
                    _ => return,
                };
                if both {
                    for side in [binary.left(), binary.right()].into_iter().flatten() {
                        self.learn_families(&side, holds);
                    }
                }
            }
            Syntax::Is(is) => {
                let Some(Syntax::Name(node)) = is.node() else { return };
                let Some(family) = is.family().map(|family| family.text()) else { return };
                let number = distribution.families.iter().position(|each| *each == family);
                if let Some(number) = number {
                    let set = match holds {
                        true => FamilySet::only(number),
                        false => FamilySet::without(number),
                    };
                    distribution.known.push((node.text(), set));
                }
            }
            _ => {}
        }
    }

    /// The families of which the node with that name may be here.
    pub(super) fn families_of(&self, node: &Syntax) -> FamilySet {
        let (Some(distribution), Syntax::Name(name)) = (&self.distribution, node) else {
            return FamilySet::ALL;
        };
        let name = name.text();
        let known = distribution.known.iter().filter(|(known, _)| *known == name);
        known.fold(FamilySet::ALL, |all, (_, set)| all.and(*set))
    }
}
