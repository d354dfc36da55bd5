//! Reads values of a TOML file as amounts, times, lists and tables, and refuses each with its place
//! if it is something else.

use std::ops::Range;

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};

use super::builder::Builder;
use super::expression::{Expression, to_time};
use super::program::Variable;
use crate::diagnostic::{Diagnostic, closest};
use crate::scheduler::{CpuSet, MAX_CPUS, Time};

pub(super) type Value<'a> = Spanned<DeValue<'a>>;

/// `repeat = 10`, `repeat = "forever"` (None), or an expression.
pub(super) fn repetitions(
    builder: &mut Builder,
    value: &Value,
) -> Result<Option<Expression>, Diagnostic> {
    if matches!(value.get_ref(), DeValue::String(word) if word == "forever") {
        return Ok(None);
    }
    let times = amount(builder, value)?;
    if times.constant().is_some_and(|times| times < 0.0) {
        return Err(builder.error(&value.span(), "a number of repetitions cannot be negative"));
    }
    Ok(Some(times))
}

pub(super) fn cpu_set(builder: &Builder, value: &Value) -> Result<CpuSet, Diagnostic> {
    let DeValue::Array(cpus) = value.get_ref() else {
        return Err(builder.error(&value.span(), "this should be a list of CPUs, as in [0, 1]"));
    };
    let mut set = CpuSet::EMPTY;
    for cpu in cpus.iter() {
        set.insert(integer(builder, cpu, 0, u64::from(MAX_CPUS) - 1)? as u32);
    }
    if set.is_empty() {
        return Err(builder.error(&value.span(), "a thread needs at least one CPU to run on"));
    }
    Ok(set)
}

/// `{ name = "expression", ... }`, in the order of the text.
pub(super) fn assignments(
    builder: &mut Builder,
    value: &Value,
) -> Result<Vec<(Variable, Expression)>, Diagnostic> {
    let mut set = Vec::new();
    for (name, span, value) in entries(builder, Some(value))? {
        let expression = amount(builder, value)?;
        set.push((builder.variable(&name, &span)?, expression));
    }
    Ok(set)
}

/// A key, its place, its value.
pub(super) type Entry<'a> = (String, Range<usize>, &'a Value<'a>);

/// The entries of a table in the order of the text; none if it is missing.
pub(super) fn entries<'a>(
    builder: &Builder,
    value: Option<&'a Value<'a>>,
) -> Result<Vec<Entry<'a>>, Diagnostic> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let DeValue::Table(table) = value.get_ref() else {
        return Err(builder.error(&value.span(), "this should be a table, as in { name = 1 }"));
    };
    let mut entries: Vec<_> =
        table.iter().map(|(key, value)| (key.get_ref().to_string(), key.span(), value)).collect();
    entries.sort_by_key(|(_, span, _)| span.start);
    Ok(entries)
}

pub(super) fn tables<'a>(
    builder: &Builder,
    top: &Fields<'a>,
    key: &str,
) -> Result<Vec<&'a Value<'a>>, Diagnostic> {
    match top.get(key) {
        None => Ok(Vec::new()),
        Some(value) => match value.get_ref() {
            DeValue::Array(array) => Ok(array.iter().collect()),
            _ => Err(builder.error(&value.span(), format!("write [[{key}]], with two brackets"))),
        },
    }
}

pub(super) fn text<'a>(builder: &Builder, value: &'a Value<'a>) -> Result<&'a str, Diagnostic> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text),
        _ => Err(builder.error(&value.span(), "this should be a text in quotes")),
    }
}

/// A number, or an expression in quotes.
pub(super) fn amount(builder: &mut Builder, value: &Value) -> Result<Expression, Diagnostic> {
    let number = match value.get_ref() {
        DeValue::String(text) => return builder.expression(text, &value.span()),
        DeValue::Integer(integer) => {
            i64::from_str_radix(integer.as_str(), integer.radix()).ok().map(|n| n as f64)
        }
        DeValue::Float(float) => {
            float.as_str().parse::<f64>().ok().filter(|number| number.is_finite())
        }
        DeValue::Boolean(truth) => Some(f64::from(*truth)),
        _ => None,
    };
    number.map(Expression::Constant).ok_or_else(|| {
        builder.error(
            &value.span(),
            "this should be a number, or an expression in quotes as \"uniform(1, 6)\"",
        )
    })
}

/// A duration or an instant: text with units, or 0.
pub(super) fn time(builder: &mut Builder, value: &Value) -> Result<Expression, Diagnostic> {
    match value.get_ref() {
        DeValue::String(text) => builder.time(text, &value.span()),
        DeValue::Integer(number) if number.as_str() == "0" => Ok(Expression::Constant(0.0)),
        DeValue::Integer(_) | DeValue::Float(_) => {
            let number = builder.source.text.get(value.span()).unwrap_or("5").to_string();
            let mut error = builder.error(&value.span(), "a time needs a unit");
            if number.starts_with('-') {
                error.message = "a time cannot be negative".into();
            }
            Err(error
                .hint(format!("write it in quotes, as \"{}ms\"", number.trim_start_matches('-'))))
        }
        _ => Err(builder.error(&value.span(), "this should be a time, as \"5ms\"")),
    }
}

pub(super) fn fixed_time(builder: &mut Builder, value: &Value) -> Result<Time, Diagnostic> {
    match time(builder, value)?.constant() {
        Some(time) => Ok(to_time(time)),
        None => Err(builder.error(&value.span(), "this must be a constant time")),
    }
}

pub(super) fn integer(
    builder: &Builder,
    value: &Value,
    least: u64,
    most: u64,
) -> Result<u64, Diagnostic> {
    let number = match value.get_ref() {
        DeValue::Integer(integer) => i128::from_str_radix(integer.as_str(), integer.radix()).ok(),
        _ => None,
    };
    match number {
        Some(number) if number >= i128::from(least) && number <= i128::from(most) => {
            Ok(number as u64)
        }
        _ => Err(builder
            .error(&value.span(), format!("this should be a whole number from {least} to {most}"))),
    }
}

/// A table whose keys are all known.
pub(super) struct Fields<'a> {
    table: &'a DeTable<'a>,
    span: Range<usize>,
    what: &'a str,
}

impl<'a> Fields<'a> {
    pub fn new(
        builder: &Builder,
        table: &'a DeTable<'a>,
        span: Range<usize>,
        what: &'a str,
        known: &[&str],
    ) -> Result<Fields<'a>, Diagnostic> {
        let unknown = table
            .iter()
            .filter(|(key, _)| !known.contains(&&**key.get_ref()))
            .min_by_key(|(key, _)| key.span().start);
        if let Some((key, _)) = unknown {
            let name = key.get_ref();
            let error = builder.error(&key.span(), format!("{what} has no `{name}`"));
            return Err(error.hint(match closest(name, known.iter().copied()) {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!("it may have {}", known.join(", ")),
            }));
        }
        Ok(Fields { table, span, what })
    }

    pub fn of(
        builder: &Builder,
        value: &'a Value<'a>,
        what: &'a str,
        known: &[&str],
    ) -> Result<Fields<'a>, Diagnostic> {
        match value.get_ref() {
            DeValue::Table(table) => Fields::new(builder, table, value.span(), what, known),
            _ => Err(builder.error(&value.span(), format!("{what} should be a table in braces"))),
        }
    }

    pub fn get(&self, key: &str) -> Option<&'a Value<'a>> {
        self.table.get(key)
    }

    pub fn need(&self, builder: &Builder, key: &str) -> Result<&'a Value<'a>, Diagnostic> {
        self.get(key)
            .ok_or_else(|| builder.error(&self.span, format!("{} needs `{key}`", self.what)))
    }
}
