//! Evaluates expressions: reads, counts divisions by zero, and fails where a check fails.
//!
//! Values are 64 bits: an `i64`, or a double's bits. `Err(Tripped)` says that a check failed and
//! that [`State::found`] holds what it found.

use attune_language::ir::CheckId;

use super::code::{Container, Expr, Indexed, Operator, Thread, Which};
use super::containers::NONE;
use super::state::{Life, State};
use super::trap::{Found, Tripped, What};

impl State {
    pub fn eval(&mut self, expr: &Expr) -> Result<i64, Tripped> {
        Ok(match expr {
            Expr::Constant(bits) => *bits,
            Expr::Local(slot) => self.locals[*slot as usize],
            Expr::Global(slot) => self.globals[*slot as usize],
            Expr::GlobalHere(base) => self.globals[(base + self.cpu) as usize],
            Expr::Attribute(thread, attribute) => {
                let thread = self.require(thread)?;
                self.attribute(thread, *attribute)
            }
            Expr::Binary(operator, operands) => {
                let left = self.eval(&operands.0)?;
                let right = self.eval(&operands.1)?;
                self.binary(*operator, left, right)
            }
            Expr::Size(container) => {
                let container = self.container(container)?;
                self.size(container)
            }
            Expr::Now => self.now,
            Expr::And(operands) => {
                (self.eval(&operands.0)? != 0 && self.eval(&operands.1)? != 0).into()
            }
            Expr::Or(operands) => {
                (self.eval(&operands.0)? != 0 || self.eval(&operands.1)? != 0).into()
            }
            Expr::Not(operand) => (self.eval(operand)? == 0).into(),
            Expr::Same(threads) => {
                let left = self.name(&threads.0)?;
                let right = self.name(&threads.1)?;
                (left == right).into()
            }
            Expr::LocalAt(indexed) => {
                let slot = self.indexed(indexed)?;
                self.locals[slot as usize]
            }
            Expr::GlobalAt(indexed) => {
                let slot = self.indexed(indexed)?;
                self.globals[slot as usize]
            }
            Expr::Cpu => self.cpu.into(),
            Expr::Cpus => self.cpus.into(),
            Expr::Negate(operand) => self.eval(operand)?.wrapping_neg(),
            Expr::NegateFloat(operand) => bits(-float(self.eval(operand)?)),
            Expr::Let(slot, parts) => {
                self.locals[*slot as usize] = self.eval(&parts.0)?;
                self.eval(&parts.1)?
            }
            Expr::Fitted(operand, low, high) => self.eval(operand)?.clamp(*low, *high),
            Expr::IntToFloat(operand) => bits(self.eval(operand)? as f64),
            // `as` truncates, saturates, and makes NaN 0.
            Expr::FloatToInt(operand) => float(self.eval(operand)?) as i64,
            Expr::Noted(number, expr) => {
                self.noted_exprs[*number as usize] += 1;
                self.eval(expr)?
            }
        })
    }

    pub fn binary(&mut self, operator: Operator, left: i64, right: i64) -> i64 {
        match operator {
            Operator::Add => left.wrapping_add(right),
            Operator::Subtract => left.wrapping_sub(right),
            Operator::Multiply => left.wrapping_mul(right),
            Operator::Divide if right == 0 => self.by_zero(0),
            Operator::Divide => left.wrapping_div(right),
            Operator::Remainder if right == 0 => self.by_zero(left),
            Operator::Remainder => left.wrapping_rem(right),
            Operator::Equal => (left == right).into(),
            Operator::NotEqual => (left != right).into(),
            Operator::Less => (left < right).into(),
            Operator::Greater => (left > right).into(),
            Operator::LessEqual => (left <= right).into(),
            Operator::GreaterEqual => (left >= right).into(),
            Operator::AddFloat => bits(float(left) + float(right)),
            Operator::SubtractFloat => bits(float(left) - float(right)),
            Operator::MultiplyFloat => bits(float(left) * float(right)),
            Operator::DivideFloat if float(right) == 0.0 => self.by_zero(bits(0.0)),
            Operator::DivideFloat => bits(float(left) / float(right)),
            Operator::RemainderFloat if float(right) == 0.0 => self.by_zero(left),
            // Rust's remainder of floats is C's fmod.
            Operator::RemainderFloat => bits(float(left) % float(right)),
            Operator::EqualFloat => (float(left) == float(right)).into(),
            Operator::NotEqualFloat => (float(left) != float(right)).into(),
            Operator::LessFloat => (float(left) < float(right)).into(),
            Operator::GreaterFloat => (float(left) > float(right)).into(),
            Operator::LessEqualFloat => (float(left) <= float(right)).into(),
            Operator::GreaterEqualFloat => (float(left) >= float(right)).into(),
        }
    }

    fn by_zero(&mut self, result: i64) -> i64 {
        self.divisions_by_zero += 1;
        result
    }

    /// The slot that an index means.
    pub fn indexed(&mut self, indexed: &Indexed) -> Result<u32, Tripped> {
        let at = self.eval(&indexed.at)?;
        if (0..i64::from(indexed.length)).contains(&at) {
            Ok(indexed.base + at as u32)
        } else {
            self.trip(Some(indexed.check), What::Index { at, length: indexed.length })
        }
    }

    /// The slot of a container.
    pub fn container(&mut self, container: &Container) -> Result<u32, Tripped> {
        match container {
            Container::One(slot) => Ok(*slot),
            Container::Here(base) => Ok(base + self.cpu),
            Container::At(indexed) => self.indexed(indexed),
        }
    }

    /// The thread that is meant; fails if there is none.
    pub fn require(&mut self, thread: &Thread) -> Result<u32, Tripped> {
        match &thread.which {
            Which::Named(name) => {
                let found = self.names[*name as usize];
                match self.life(found) {
                    Life::Living => Ok(found),
                    _ => self.trip(thread.check, What::Gone { thread: found }),
                }
            }
            Which::First(container) => {
                let container = self.container(container)?;
                match self.first(container) {
                    NONE => self.trip(thread.check, What::Empty { container, destination: None }),
                    first => Ok(first),
                }
            }
        }
    }

    /// The thread that is named, living or not; [`NONE`] for an empty container.
    pub fn name(&mut self, thread: &Thread) -> Result<u32, Tripped> {
        match &thread.which {
            Which::Named(name) => Ok(self.names[*name as usize]),
            Which::First(container) => {
                let container = self.container(container)?;
                Ok(self.first(container))
            }
        }
    }

    #[cold]
    pub fn trip<T>(&mut self, check: Option<CheckId>, what: What) -> Result<T, Tripped> {
        self.found = Some(Found { check, what });
        Err(Tripped)
    }
}

fn float(bits: i64) -> f64 {
    f64::from_bits(bits as u64)
}

fn bits(value: f64) -> i64 {
    value.to_bits() as i64
}
