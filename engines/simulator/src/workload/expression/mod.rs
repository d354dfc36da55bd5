//! Evaluates the amounts of a workload: `"3ms"`, `"uniform(1ms, 2ms)"`, `"bytes_left * 8ns"`.
//!
//! All numbers are 64-bit floats, times in nanoseconds; comparisons and logic give 0 or 1; x / 0 =
//! 0 and x % 0 = x. An expression is compiled once to steps for a small stack; [`MAX_DEPTH`] bounds
//! that stack, checked when the text is read.

mod parse;

use super::distribution::Random;
use crate::scheduler::Time;
pub use parse::parse;

/// What a name in an expression stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// A variable of the thread, by number.
    Thread(u16),
    /// A variable of the whole workload, by number.
    Global(u16),
    /// The virtual time.
    Now,
    /// The release time of the thread's job.
    Release,
    /// When the message that the thread received last was sent.
    Sent,
    /// The thread's number among those of its name, from 0.
    Index,
    /// The messages that wait in a channel.
    QueueLength(u16),
}

/// Supplies the values of names.
pub trait Environment {
    fn load(&mut self, name: Name) -> f64;
    fn random(&mut self) -> &mut Random;
}

#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    Constant(f64),
    Steps(Box<[Step]>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    Push(f64),
    Load(Name),
    Negate,
    Not,
    Binary(Binary),
    Floor,
    Ceil,
    Uniform,
    Exponential,
    Normal,
    Lognormal,
    Pareto,
    /// One of the topmost n values.
    Choose(u8),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
    And,
    Or,
    Min,
    Max,
}

/// The most values that an expression may hold at once.
const MAX_DEPTH: usize = 32;

impl Expression {
    pub fn constant(&self) -> Option<f64> {
        match self {
            Expression::Constant(value) => Some(*value),
            Expression::Steps(_) => None,
        }
    }

    pub fn name(name: Name) -> Expression {
        Expression::Steps(Box::new([Step::Load(name)]))
    }

    #[inline]
    pub fn evaluate(&self, environment: &mut impl Environment) -> f64 {
        match self {
            Expression::Constant(value) => *value,
            Expression::Steps(steps) => evaluate(steps, environment),
        }
    }
}

/// The longest time that is told apart, about 18 years: several of them can be added without
/// overflow.
pub const LONGEST: Time = Time::MAX / 16;

/// Whole nanoseconds, neither negative nor beyond [`LONGEST`].
pub fn to_time(value: f64) -> Time {
    (value as Time).clamp(0, LONGEST)
}

fn evaluate(steps: &[Step], environment: &mut impl Environment) -> f64 {
    let mut stack = [0.0f64; MAX_DEPTH];
    let mut top = 0;
    for step in steps {
        match *step {
            Step::Push(value) => {
                stack[top] = value;
                top += 1;
            }
            Step::Load(name) => {
                stack[top] = environment.load(name);
                top += 1;
            }
            Step::Negate => stack[top - 1] = -stack[top - 1],
            Step::Not => stack[top - 1] = f64::from(stack[top - 1] == 0.0),
            Step::Floor => stack[top - 1] = stack[top - 1].floor(),
            Step::Ceil => stack[top - 1] = stack[top - 1].ceil(),
            Step::Exponential => stack[top - 1] = environment.random().exponential(stack[top - 1]),
            Step::Choose(n) => {
                let first = top - n as usize;
                stack[first] = stack[first + environment.random().below(n as usize)];
                top = first + 1;
            }
            Step::Binary(_) | Step::Uniform | Step::Normal | Step::Lognormal | Step::Pareto => {
                let (a, b) = (stack[top - 2], stack[top - 1]);
                top -= 1;
                stack[top - 1] = match *step {
                    Step::Binary(operator) => operator.apply(a, b),
                    Step::Uniform => environment.random().uniform(a, b),
                    Step::Normal => environment.random().normal(a, b),
                    Step::Lognormal => environment.random().lognormal(a, b),
                    _ => environment.random().pareto(a, b),
                };
            }
        }
    }
    stack[0]
}

impl Binary {
    fn apply(self, a: f64, b: f64) -> f64 {
        match self {
            Binary::Add => a + b,
            Binary::Subtract => a - b,
            Binary::Multiply => a * b,
            Binary::Divide => {
                if b == 0.0 {
                    0.0
                } else {
                    a / b
                }
            }
            Binary::Remainder => {
                if b == 0.0 {
                    a
                } else {
                    a % b
                }
            }
            Binary::Less => f64::from(a < b),
            Binary::LessEqual => f64::from(a <= b),
            Binary::Greater => f64::from(a > b),
            Binary::GreaterEqual => f64::from(a >= b),
            Binary::Equal => f64::from(a == b),
            Binary::NotEqual => f64::from(a != b),
            Binary::And => f64::from(a != 0.0 && b != 0.0),
            Binary::Or => f64::from(a != 0.0 || b != 0.0),
            Binary::Min => a.min(b),
            Binary::Max => a.max(b),
        }
    }
}
