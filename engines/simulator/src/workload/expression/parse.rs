//! Parses text to steps by precedence climbing, and counts the stack's depth on the way.

use std::ops::Range;

use super::{Binary, Environment, Expression, MAX_DEPTH, Name, Step, evaluate};
use crate::workload::distribution::Random;

/// Why a text is no expression; the range is in bytes of the text.
#[derive(Debug, PartialEq, Eq)]
pub struct ParseError {
    pub message: String,
    pub hint: Option<String>,
    pub span: Range<usize>,
}

/// Reads an expression. `resolve` says what a name stands for, or why it stands for nothing.
pub fn parse(
    text: &str,
    resolve: &mut dyn FnMut(&str) -> Result<Name, String>,
    channel: &mut dyn FnMut(&str) -> u16,
) -> Result<Expression, ParseError> {
    let mut parser =
        Parser { text, position: 0, steps: Vec::new(), depth: 0, nesting: 0, resolve, channel };
    parser.binary(0)?;
    parser.skip_space();
    if parser.position < text.len() {
        let end = text[parser.position..].chars().next().map_or(0, char::len_utf8);
        return Err(parser.error(
            parser.position..parser.position + end,
            "this does not continue the expression",
        ));
    }
    let random_or_name = |step: &Step| {
        matches!(
            step,
            Step::Load(_)
                | Step::Uniform
                | Step::Exponential
                | Step::Normal
                | Step::Lognormal
                | Step::Pareto
                | Step::Choose(_)
        )
    };
    if parser.steps.iter().any(random_or_name) {
        Ok(Expression::Steps(parser.steps.into_boxed_slice()))
    } else {
        Ok(Expression::Constant(evaluate(&parser.steps, &mut NoNames(Random::new(0, 0)))))
    }
}

/// The environment of a constant expression, in which nothing is looked up.
struct NoNames(Random);

impl Environment for NoNames {
    fn load(&mut self, _: Name) -> f64 {
        0.0
    }
    fn random(&mut self) -> &mut Random {
        &mut self.0
    }
}

struct Parser<'a> {
    text: &'a str,
    position: usize,
    steps: Vec<Step>,
    depth: usize,
    nesting: usize,
    resolve: &'a mut dyn FnMut(&str) -> Result<Name, String>,
    channel: &'a mut dyn FnMut(&str) -> u16,
}

/// Binary operators by precedence, loosest first; longer spellings before their prefixes.
const LEVELS: [&[(&str, Binary)]; 6] = [
    &[("||", Binary::Or)],
    &[("&&", Binary::And)],
    &[("==", Binary::Equal), ("!=", Binary::NotEqual)],
    &[
        ("<=", Binary::LessEqual),
        (">=", Binary::GreaterEqual),
        ("<", Binary::Less),
        (">", Binary::Greater),
    ],
    &[("+", Binary::Add), ("-", Binary::Subtract)],
    &[("*", Binary::Multiply), ("/", Binary::Divide), ("%", Binary::Remainder)],
];

const FUNCTIONS: [&str; 11] = [
    "min",
    "max",
    "floor",
    "ceil",
    "uniform",
    "exponential",
    "normal",
    "lognormal",
    "pareto",
    "choose",
    "length",
];

impl Parser<'_> {
    fn binary(&mut self, level: usize) -> Result<(), ParseError> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        self.binary(level + 1)?;
        'more: loop {
            self.skip_space();
            for (spelling, operator) in *operators {
                if self.text[self.position..].starts_with(spelling) {
                    self.position += spelling.len();
                    self.binary(level + 1)?;
                    self.push(Step::Binary(*operator), 2)?;
                    continue 'more;
                }
            }
            return Ok(());
        }
    }

    fn unary(&mut self) -> Result<(), ParseError> {
        self.skip_space();
        let start = self.position;
        self.nesting += 1;
        if self.nesting > MAX_DEPTH {
            return Err(self.error(start..start + 1, "the expression is nested too deeply"));
        }
        match self.peek() {
            Some('-') => {
                self.position += 1;
                self.unary()?;
                self.push(Step::Negate, 1)?;
            }
            Some('!') => {
                self.position += 1;
                self.unary()?;
                self.push(Step::Not, 1)?;
            }
            Some('(') => {
                self.position += 1;
                self.binary(0)?;
                self.expect(')')?;
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number()?,
            Some(c) if c.is_alphabetic() || c == '_' => self.name_or_call()?,
            Some(c) => {
                return Err(
                    self.error(start..start + c.len_utf8(), format!("`{c}` begins no value"))
                );
            }
            None => {
                return Err(self.error(
                    start..start,
                    if self.text.trim().is_empty() {
                        "an empty expression"
                    } else {
                        "the expression ends too early"
                    },
                ));
            }
        }
        self.nesting -= 1;
        Ok(())
    }

    fn number(&mut self) -> Result<(), ParseError> {
        let start = self.position;
        let digits =
            self.take_while(|c| c.is_ascii_digit() || c == '.' || c == '_').replace('_', "");
        let Ok(value) = digits.parse::<f64>() else {
            return Err(self.error(start..self.position, format!("`{digits}` is no number")));
        };
        let unit_start = self.position;
        let unit = self.take_while(|c| c.is_alphanumeric() || c == '%').to_string();
        let Some(scale) = unit_scale(&unit) else {
            let mut error = self.error(unit_start..self.position, format!("`{unit}` is no unit"));
            error.hint =
                Some("times end in ns, us, ms, s or min; sizes in B, kB, KiB, MB or MiB".into());
            return Err(error);
        };
        self.push(Step::Push(value * scale), 0)
    }

    fn name_or_call(&mut self) -> Result<(), ParseError> {
        let start = self.position;
        let name = self.take_while(|c| c.is_alphanumeric() || c == '_').to_string();
        let span = start..self.position;
        self.skip_space();
        if self.peek() == Some('(') {
            self.position += 1;
            return self.call(&name, span);
        }
        match (self.resolve)(&name) {
            Ok(name) => self.push(Step::Load(name), 0),
            Err(message) => Err(self.error(span, message)),
        }
    }

    fn call(&mut self, function: &str, span: Range<usize>) -> Result<(), ParseError> {
        if function == "length" {
            self.skip_space();
            let channel =
                self.take_while(|c| c.is_alphanumeric() || c == '_' || c == '-').to_string();
            if channel.is_empty() {
                return Err(self.error(span, "length takes the name of a channel"));
            }
            self.expect(')')?;
            let channel = (self.channel)(&channel);
            return self.push(Step::Load(Name::QueueLength(channel)), 0);
        }
        let mut arguments = 0usize;
        loop {
            self.binary(0)?;
            arguments += 1;
            self.skip_space();
            if self.peek() != Some(',') {
                break;
            }
            self.position += 1;
        }
        self.expect(')')?;
        let (step, wanted) = match function {
            "min" => (Step::Binary(Binary::Min), 2),
            "max" => (Step::Binary(Binary::Max), 2),
            "floor" => (Step::Floor, 1),
            "ceil" => (Step::Ceil, 1),
            "uniform" => (Step::Uniform, 2),
            "exponential" => (Step::Exponential, 1),
            "normal" => (Step::Normal, 2),
            "lognormal" => (Step::Lognormal, 2),
            "pareto" => (Step::Pareto, 2),
            "choose" => (Step::Choose(arguments as u8), arguments),
            _ => {
                let mut error = self.error(span, format!("there is no function `{function}`"));
                error.hint = Some(match crate::diagnostic::closest(function, FUNCTIONS) {
                    Some(close) => format!("did you mean `{close}`?"),
                    None => format!("the functions are {}", FUNCTIONS.join(", ")),
                });
                return Err(error);
            }
        };
        if arguments != wanted {
            return Err(self.error(
                span,
                format!(
                    "`{function}` takes {wanted} value{}, not {arguments}",
                    if wanted == 1 { "" } else { "s" }
                ),
            ));
        }
        self.push(step, arguments)
    }

    /// Adds a step that takes `operands` values and leaves one.
    fn push(&mut self, step: Step, operands: usize) -> Result<(), ParseError> {
        self.depth = self.depth + 1 - operands;
        if self.depth > MAX_DEPTH {
            return Err(
                self.error(0..self.text.len(), "the expression holds too many values at once")
            );
        }
        self.steps.push(step);
        Ok(())
    }

    fn expect(&mut self, wanted: char) -> Result<(), ParseError> {
        self.skip_space();
        if self.peek() == Some(wanted) {
            self.position += wanted.len_utf8();
            return Ok(());
        }
        let end = self.position + self.peek().map_or(0, char::len_utf8);
        Err(self.error(self.position..end, format!("here `{wanted}` is missing")))
    }

    fn peek(&self) -> Option<char> {
        self.text[self.position..].chars().next()
    }

    fn skip_space(&mut self) {
        self.take_while(char::is_whitespace);
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &str {
        let rest = &self.text[self.position..];
        let end = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.position += end;
        &rest[..end]
    }

    fn error(&self, span: Range<usize>, message: impl Into<String>) -> ParseError {
        ParseError { message: message.into(), hint: None, span }
    }
}

fn unit_scale(unit: &str) -> Option<f64> {
    Some(match unit {
        "" | "ns" | "B" => 1.0,
        "us" | "kB" => 1e3,
        "ms" | "MB" => 1e6,
        "s" | "GB" => 1e9,
        "min" => 60e9,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "%" => 0.01,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(Random);
    impl Environment for Fixed {
        fn load(&mut self, name: Name) -> f64 {
            match name {
                Name::Thread(n) => f64::from(n) * 10.0,
                Name::Now => 1e9,
                _ => 0.0,
            }
        }
        fn random(&mut self) -> &mut Random {
            &mut self.0
        }
    }

    fn compile(text: &str) -> Result<Expression, ParseError> {
        let mut resolve = |name: &str| match name {
            "now" => Ok(Name::Now),
            "x" => Ok(Name::Thread(1)),
            other => Err(format!("`{other}` is unknown")),
        };
        parse(text, &mut resolve, &mut |_| 0)
    }

    fn value(text: &str) -> f64 {
        compile(text).unwrap().evaluate(&mut Fixed(Random::new(1, 1)))
    }

    #[test]
    fn arithmetic_follows_precedence_and_units() {
        assert_eq!(value("1ms + 2us * 3"), 1_006_000.0);
        assert_eq!(value("(1 + 2) * -3"), -9.0);
        assert_eq!(value("10 - 3 - 2"), 5.0);
        assert_eq!(value("1 + 1 == 2 && !(3 <= 2)"), 1.0);
        assert_eq!(value("now + x"), 1_000_000_010.0);
        assert_eq!(value("max(3, min(7, 5)) + floor(1.9) + ceil(0.1)"), 7.0);
        assert_eq!(value("7 / 0 + 7 % 0"), 7.0);
        assert_eq!(value("2KiB + 50%"), 2048.5);
        assert_eq!(compile("2 * 3ms").unwrap(), Expression::Constant(6e6));
    }

    #[test]
    fn choose_draws_each_of_its_values() {
        let expression = compile("choose(1, 2, 3) + 0 * uniform(0, 1)").unwrap();
        let mut environment = Fixed(Random::new(3, 3));
        let mut seen = [0; 4];
        for _ in 0..300 {
            seen[expression.evaluate(&mut environment) as usize] += 1;
        }
        assert!(seen[1..].iter().all(|&n| n > 50), "{seen:?}");
    }

    #[test]
    fn mistakes_have_a_place() {
        let error = |text: &str| {
            let error = compile(text).unwrap_err();
            (error.message, error.span)
        };
        assert_eq!(error("3xs"), ("`xs` is no unit".into(), 1..3));
        assert_eq!(error("1 +"), ("the expression ends too early".into(), 3..3));
        assert_eq!(error("unifrom(1, 2)").1, 0..7);
        assert_eq!(error("uniform(1)").0, "`uniform` takes 2 values, not 1");
        assert_eq!(error("1 2"), ("this does not continue the expression".into(), 2..3));
        assert_eq!(error("y"), ("`y` is unknown".into(), 0..1));
        assert_eq!(error(""), ("an empty expression".into(), 0..0));
        assert!(compile(&"(".repeat(10_000)).is_err());
        assert!(compile(&format!("choose({})", vec!["1"; 400].join(","))).is_err());
        assert!(compile("é").is_err());
    }
}
