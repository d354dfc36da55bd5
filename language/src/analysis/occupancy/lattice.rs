//! The values that the occupancy analysis computes with: sizes of containers, ranges of integers,
//! sets of places.
//!
//! Each describes a set of concrete values; every operation yields a superset of the exact answer.

use crate::ir::{BinaryOp, UnaryOp};

/// How many threads a container may hold: `lo..=hi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub lo: u16,
    /// [`MANY`]: no bound known.
    pub hi: u16,
}

pub const MANY: u16 = u16::MAX;
/// Larger bounds are not told apart.
const LARGE: u16 = 1000;

impl Size {
    pub const NONE: Size = Size { lo: 0, hi: 0 };
    pub const SOME: Size = Size { lo: 1, hi: MANY };
    pub const ANY: Size = Size { lo: 0, hi: MANY };

    pub fn at_most(hi: u16) -> Size {
        Size { lo: 0, hi }
    }

    pub fn is_empty_set(self) -> bool {
        self.lo > self.hi
    }

    pub fn hull(self, other: Size) -> Size {
        Size { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    pub fn meet(self, other: Size) -> Size {
        Size { lo: self.lo.max(other.lo), hi: self.hi.min(other.hi) }
    }

    pub fn includes(self, other: Size) -> bool {
        self.lo <= other.lo && other.hi <= self.hi
    }

    /// Some number between `least` and `most` added (each -1, 0 or 1); never below zero.
    pub fn shift(self, least: i32, most: i32) -> Size {
        let lo = (i32::from(self.lo) + least).clamp(0, i32::from(LARGE)) as u16;
        let hi = if self.hi == MANY { MANY } else { (i32::from(self.hi) + most).max(0) as u16 };
        Size { lo, hi: if hi > LARGE { MANY } else { hi } }
    }

    /// Outwards to one of few bounds, so that growing sizes come to an end.
    pub fn coarse(self, grain: Grain) -> Size {
        let (least, most) = match grain {
            Grain::Exact => return self,
            Grain::Loop => (2, 2),
            // Whether there are threads is worth telling apart, and hardly how many.
            Grain::Phase => (1, if self.hi > 1 { 0 } else { 1 }),
        };
        Size { lo: self.lo.min(least), hi: if self.hi <= most { self.hi } else { MANY } }
    }

    pub fn range(self) -> Range {
        // No machine holds more threads than that.
        let hi = if self.hi == MANY { i64::from(u32::MAX) } else { i64::from(self.hi) };
        Range { lo: i64::from(self.lo), hi }
    }

    /// The sizes within a range of integers; an empty set if there are none.
    pub fn within(range: Range) -> Size {
        if range.hi < 0 {
            return Size { lo: 1, hi: 0 };
        }
        let hi = if range.hi > i64::from(LARGE) { MANY } else { range.hi as u16 };
        Size { lo: range.lo.clamp(0, i64::from(LARGE)) as u16, hi }
    }
}

/// How closely states that come again and again are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    Exact,
    Loop,
    /// Between handlers.
    Phase,
}

/// The integers `lo..=hi`; empty if `lo > hi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub lo: i64,
    pub hi: i64,
}

impl Range {
    pub const ALL: Range = Range { lo: i64::MIN, hi: i64::MAX };
    pub const TRUTH: Range = Range { lo: 0, hi: 1 };
    pub const ZERO: Range = Range { lo: 0, hi: 0 };
    pub const ONE: Range = Range { lo: 1, hi: 1 };

    pub fn exactly(value: i64) -> Range {
        Range { lo: value, hi: value }
    }

    pub fn constant(self) -> Option<i64> {
        (self.lo == self.hi).then_some(self.lo)
    }

    pub fn is_empty(self) -> bool {
        self.lo > self.hi
    }

    pub fn hull(self, other: Range) -> Range {
        Range { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    pub fn meet(self, other: Range) -> Range {
        Range { lo: self.lo.max(other.lo), hi: self.hi.min(other.hi) }
    }

    pub fn includes(self, other: Range) -> bool {
        self.lo <= other.lo && other.hi <= self.hi
    }

    pub fn contains(self, value: i64) -> bool {
        self.lo <= value && value <= self.hi
    }

    /// Whether the two have no value in common.
    pub fn apart(self, other: Range) -> bool {
        self.hi < other.lo || other.hi < self.lo
    }

    /// Without that value, if it is an end.
    pub fn without(self, value: i64) -> Range {
        if self.lo == value && self.hi == value {
            Range { lo: 1, hi: 0 }
        } else if self.lo == value {
            Range { lo: value + 1, ..self }
        } else if self.hi == value {
            Range { hi: value - 1, ..self }
        } else {
            self
        }
    }

    pub fn truth(self) -> Truth {
        if self == Range::ZERO {
            Truth::No
        } else if !self.contains(0) {
            Truth::Yes
        } else {
            Truth::Maybe
        }
    }

    /// The range of the exact results, or everything if one of them would wrap.
    fn exact(lo: i128, hi: i128) -> Range {
        match (i64::try_from(lo), i64::try_from(hi)) {
            (Ok(lo), Ok(hi)) => Range { lo, hi },
            _ => Range::ALL,
        }
    }

    pub fn unary(op: UnaryOp, operand: Range) -> Range {
        match op {
            UnaryOp::Negate => Range::exact(-i128::from(operand.hi), -i128::from(operand.lo)),
            UnaryOp::Not => operand.truth().not().range(),
        }
    }

    pub fn binary(op: BinaryOp, left: Range, right: Range) -> Range {
        let (a, b) = (
            (i128::from(left.lo), i128::from(left.hi)),
            (i128::from(right.lo), i128::from(right.hi)),
        );
        match op {
            BinaryOp::Add => Range::exact(a.0 + b.0, a.1 + b.1),
            BinaryOp::Subtract => Range::exact(a.0 - b.1, a.1 - b.0),
            BinaryOp::Multiply => {
                let ends = [a.0 * b.0, a.0 * b.1, a.1 * b.0, a.1 * b.1];
                let lo = ends.into_iter().fold(i128::MAX, i128::min);
                Range::exact(lo, ends.into_iter().fold(i128::MIN, i128::max))
            }
            // A positive divisor moves a number towards zero; any other may also give zero, the
            // opposite, or wrap.
            BinaryOp::Divide if right.lo >= 1 => {
                let ends = [a.0 / b.0, a.0 / b.1, a.1 / b.0, a.1 / b.1];
                let lo = ends.into_iter().fold(i128::MAX, i128::min);
                Range::exact(lo, ends.into_iter().fold(i128::MIN, i128::max))
            }
            BinaryOp::Divide => Range::ALL,
            // Has the sign of the dividend, and is no larger than it; x % 0 = x.
            BinaryOp::Remainder => {
                let (least, most) =
                    if right.lo >= 1 { (1 - right.hi, right.hi - 1) } else { (i64::MIN, i64::MAX) };
                Range { lo: left.lo.max(least).min(0), hi: left.hi.min(most).max(0) }
            }
            BinaryOp::Equal => Truth::equal(left, right).range(),
            BinaryOp::NotEqual => Truth::equal(left, right).not().range(),
            BinaryOp::Less => Truth::less(left, right).range(),
            BinaryOp::Greater => Truth::less(right, left).range(),
            BinaryOp::LessEqual => Truth::less(right, left).not().range(),
            BinaryOp::GreaterEqual => Truth::less(left, right).not().range(),
        }
    }
}

/// Whether something holds in all states that a description covers, in none, or in some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    Yes,
    No,
    Maybe,
}

impl Truth {
    pub fn of(yes: bool, no: bool) -> Truth {
        match (yes, no) {
            (true, _) => Truth::Yes,
            (_, true) => Truth::No,
            _ => Truth::Maybe,
        }
    }

    pub fn not(self) -> Truth {
        match self {
            Truth::Yes => Truth::No,
            Truth::No => Truth::Yes,
            Truth::Maybe => Truth::Maybe,
        }
    }

    pub fn range(self) -> Range {
        match self {
            Truth::Yes => Range::ONE,
            Truth::No => Range::ZERO,
            Truth::Maybe => Range::TRUTH,
        }
    }

    fn equal(left: Range, right: Range) -> Truth {
        Truth::of(left.constant().is_some() && left == right, left.apart(right))
    }

    fn less(left: Range, right: Range) -> Truth {
        Truth::of(left.hi < right.lo, left.lo >= right.hi)
    }
}

/// A set of places where a thread may be: containers, nowhere (a new thread), destroyed.
///
/// One bit a container; two for a per-CPU container of an engine with several CPUs: this CPU's, and
/// any other's. The empty set says that no thread is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places(pub u64);

impl Places {
    pub const UNBOUND: Places = Places(0);
    pub const DESTROYED: Places = Places(1 << 63);
    pub const NOWHERE: Places = Places(1 << 62);
    /// Shared by all containers that found no bit of their own.
    pub const CROWD: Places = Places(1 << 61);
    /// Bits for containers.
    pub const BITS: u32 = 61;

    pub fn is_bound(self) -> bool {
        self.0 != 0
    }

    pub fn overlaps(self, other: Places) -> bool {
        self.0 & other.0 != 0
    }

    pub fn within(self, other: Places) -> bool {
        self.0 & !other.0 == 0
    }

    pub fn with(self, other: Places) -> Places {
        Places(self.0 | other.0)
    }

    pub fn and(self, other: Places) -> Places {
        Places(self.0 & other.0)
    }

    pub fn without(self, other: Places) -> Places {
        Places(self.0 & !other.0)
    }

    pub fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Each place, as a set of one.
    pub fn each(self) -> impl Iterator<Item = Places> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let lowest = rest & rest.wrapping_neg();
            rest ^= lowest;
            (lowest != 0).then_some(Places(lowest))
        })
    }

    /// The number of the only place.
    pub fn bit(self) -> u32 {
        self.0.trailing_zeros()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every operation's range holds the result of every pair of members, for all small ranges and
    /// the extremes.
    #[test]
    fn ranges_hold_every_result() {
        let ends = [i64::MIN, -3, -1, 0, 1, 2, 5, i64::MAX];
        let ranges: Vec<Range> = ends
            .iter()
            .flat_map(|&lo| {
                ends.iter().filter(move |&&hi| lo <= hi).map(move |&hi| Range { lo, hi })
            })
            .collect();
        let members = |range: Range| ends.into_iter().filter(move |&end| range.contains(end));
        for &left in &ranges {
            for &right in &ranges {
                for a in members(left) {
                    for b in members(right) {
                        let results = [
                            (BinaryOp::Add, a.wrapping_add(b)),
                            (BinaryOp::Subtract, a.wrapping_sub(b)),
                            (BinaryOp::Multiply, a.wrapping_mul(b)),
                            (BinaryOp::Divide, if b == 0 { 0 } else { a.wrapping_div(b) }),
                            (BinaryOp::Remainder, if b == 0 { a } else { a.wrapping_rem(b) }),
                            (BinaryOp::Equal, i64::from(a == b)),
                            (BinaryOp::NotEqual, i64::from(a != b)),
                            (BinaryOp::Less, i64::from(a < b)),
                            (BinaryOp::Greater, i64::from(a > b)),
                            (BinaryOp::LessEqual, i64::from(a <= b)),
                            (BinaryOp::GreaterEqual, i64::from(a >= b)),
                        ];
                        for (op, result) in results {
                            let range = Range::binary(op, left, right);
                            assert!(
                                range.contains(result),
                                "{a} {op:?} {b} = {result}, not in {range:?}"
                            );
                        }
                        assert!(Range::unary(UnaryOp::Negate, left).contains(a.wrapping_neg()));
                        assert!(Range::unary(UnaryOp::Not, left).contains(i64::from(a == 0)));
                    }
                }
            }
        }
    }

    #[test]
    fn sizes_shift_without_losing_the_exact_answer() {
        let one = Size { lo: 1, hi: 1 };
        assert_eq!(one.shift(-1, -1), Size::NONE);
        assert_eq!(Size::SOME.shift(-1, -1), Size::ANY);
        assert_eq!(Size::NONE.shift(0, 1), Size::at_most(1));
        assert_eq!(Size { lo: 5, hi: 7 }.coarse(Grain::Loop), Size { lo: 2, hi: MANY });
        assert_eq!(Size { lo: 0, hi: 1 }.coarse(Grain::Phase), Size::at_most(1));
        assert_eq!(Size { lo: 1, hi: 2 }.coarse(Grain::Phase), Size::SOME);
        assert_eq!(Size::within(Range { lo: -4, hi: 3 }), Size { lo: 0, hi: 3 });
        assert!(Size::within(Range { lo: -4, hi: -1 }).is_empty_set());
    }
}
