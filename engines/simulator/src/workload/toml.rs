//! Attune's own form of workloads, see docs/workloads.md: tables of a TOML file to a [`Workload`].

use std::ops::Range;

use ::toml::Spanned;
use ::toml::de::{DeTable, DeValue};

use super::actions;
use super::builder::{Builder, Settings};
use super::expression::{Expression, to_time};
use super::program::{Operation, Variable};
use super::*;
use crate::diagnostic::closest;
use crate::policy::MAX_CPUS;

pub(super) type Value<'a> = Spanned<DeValue<'a>>;

pub(super) fn read(source: Source) -> Result<Workload, Diagnostic> {
    let text = source.text.clone();
    let document = DeTable::parse(&text).map_err(|error| {
        let location = source.locate(&error.span().unwrap_or(0..0));
        Diagnostic::new(format!("this is not TOML: {}", error.message())).at(location)
    })?;
    let mut builder = Builder::new(source);
    let top = Fields::new(
        &builder,
        document.get_ref(),
        document.span(),
        "a workload",
        &[
            "name",
            "duration",
            "cpus",
            "context_switch",
            "migration",
            "max_threads",
            "globals",
            "semaphores",
            "channels",
            "barriers",
            "thread",
            "client",
            "at",
        ],
    )?;
    let settings = settings(&mut builder, &top)?;
    declarations(&mut builder, &top)?;
    let threads = tables(&builder, &top, "thread")?;
    let clients = tables(&builder, &top, "client")?;
    if threads.is_empty() {
        return Err(Diagnostic::new(format!("{}: the workload has no threads", builder.source.name))
            .hint("begin one with [[thread]]"));
    }
    name_templates(&mut builder, threads.iter().chain(&clients))?;
    for table in &threads {
        template(&mut builder, table, false, settings.duration)?;
    }
    for table in &clients {
        template(&mut builder, table, true, settings.duration)?;
    }
    let changes = changes(&mut builder, &top)?;
    builder.finish(Settings { changes, ..settings })
}

fn settings(builder: &mut Builder, top: &Fields) -> Result<Settings, Diagnostic> {
    let stem = builder.source.name.rsplit('/').next().unwrap_or("").trim_end_matches(".toml").to_string();
    let mut settings = Settings {
        name: stem,
        duration: None,
        cpus: None,
        context_switch: 0,
        migration: 0,
        max_threads: DEFAULT_MAX_THREADS,
        notes: Vec::new(),
        changes: Vec::new(),
    };
    if let Some(value) = top.get("name") {
        settings.name = text(builder, value)?.to_string();
    }
    if let Some(value) = top.get("duration") {
        let duration = fixed_time(builder, value)?;
        if duration == 0 {
            return Err(builder.error(&value.span(), "the duration cannot be 0"));
        }
        settings.duration = Some(duration);
    }
    if let Some(value) = top.get("cpus") {
        settings.cpus = Some(integer(builder, value, 1, u64::from(MAX_CPUS))? as u32);
    }
    if let Some(value) = top.get("context_switch") {
        settings.context_switch = fixed_time(builder, value)?;
    }
    if let Some(value) = top.get("migration") {
        settings.migration = fixed_time(builder, value)?;
    }
    if let Some(value) = top.get("max_threads") {
        settings.max_threads = integer(builder, value, 1, u64::from(MOST_THREADS))? as u32;
    }
    Ok(settings)
}

fn declarations(builder: &mut Builder, top: &Fields) -> Result<(), Diagnostic> {
    for (name, span, value) in entries(builder, top.get("globals"))? {
        let expression = amount(builder, value)?;
        let Some(initial) = expression.constant() else {
            return Err(builder.error(&value.span(), "a global begins with a constant"));
        };
        // Asked for its check of the name; the global itself is declared here.
        builder.variable(&name, &span)?;
        builder.variables.retain(|variable| variable.name != name);
        builder.globals.push(Global { name, initial });
    }
    for (name, _, value) in entries(builder, top.get("semaphores"))? {
        let initial = integer(builder, value, 0, u64::from(u32::MAX))?;
        let number = builder.semaphore(&name);
        builder.semaphores[number as usize].value = initial;
    }
    for (name, _, value) in entries(builder, top.get("channels"))? {
        let fields = Fields::of(builder, value, "a channel", &["capacity"])?;
        let capacity = match fields.get("capacity") {
            Some(value) => Some(integer(builder, value, 1, u64::from(u32::MAX))? as usize),
            None => None,
        };
        let number = builder.channel(&name);
        builder.channels[number as usize].value = capacity;
    }
    for (name, _, value) in entries(builder, top.get("barriers"))? {
        let parties = integer(builder, value, 1, u64::from(MOST_THREADS))? as u32;
        builder.barriers.push(Barrier { name, parties });
    }
    Ok(())
}

fn changes(builder: &mut Builder, top: &Fields) -> Result<Vec<Change>, Diagnostic> {
    let mut changes = Vec::new();
    for table in tables(builder, top, "at")? {
        let fields = Fields::of(builder, table, "[[at]]", &["time", "set"])?;
        let at = fixed_time(builder, fields.need(builder, "time")?)?;
        let set = assignments(builder, fields.need(builder, "set")?)?;
        if set.iter().any(|(variable, _)| matches!(variable, Variable::Thread(_))) {
            return Err(builder
                .error(&table.span(), "[[at]] changes globals only")
                .hint("declare the name in [globals]"));
        }
        changes.push(Change { at, set });
    }
    Ok(changes)
}

/// Names are known before programs are read, so that threads may name each other.
fn name_templates<'a>(
    builder: &mut Builder,
    tables: impl Iterator<Item = &'a &'a Value<'a>>,
) -> Result<(), Diagnostic> {
    for (number, table) in tables.enumerate() {
        let DeValue::Table(table_fields) = table.get_ref() else {
            return Err(builder.error(&table.span(), "this should be a table"));
        };
        let Some(name) = table_fields.get("name") else {
            return Err(builder.error(&table.span(), "`name` is missing"));
        };
        let text = text(builder, name)?.to_string();
        if text.is_empty() {
            return Err(builder.error(&name.span(), "a name cannot be empty"));
        }
        if builder.template_names.insert(text.clone(), number as u16).is_some() {
            return Err(builder
                .error(&name.span(), format!("there is already a thread `{text}`"))
                .hint("give them different names and the same `group`"));
        }
    }
    Ok(())
}

const TEMPLATE_KEYS: [&str; 13] = [
    "name",
    "count",
    "group",
    "start",
    "cpus",
    "imports",
    "repeat",
    "do",
    "period",
    "deadline",
    "late",
    "job_imports",
    "phase",
];

fn template(
    builder: &mut Builder,
    table: &Value,
    outside: bool,
    duration: Option<Time>,
) -> Result<(), Diagnostic> {
    let what = if outside { "[[client]]" } else { "[[thread]]" };
    let fields = Fields::of(builder, table, what, &TEMPLATE_KEYS)?;
    let name_value = fields.need(builder, "name")?;
    let name = text(builder, name_value)?.to_string();
    let count = match fields.get("count") {
        Some(value) => integer(builder, value, 0, u64::from(MOST_THREADS))? as u32,
        None => 1,
    };
    let group = match fields.get("group") {
        Some(value) => text(builder, value)?.to_string(),
        None => name.clone(),
    };
    let group = builder.group(&group);
    let start = match fields.get("start") {
        Some(value) => time(builder, value)?,
        None => Expression::Constant(0.0),
    };
    let affinity = match fields.get("cpus") {
        Some(value) => cpu_set(builder, value)?,
        None => CpuSet::ALL,
    };
    let initial = match fields.get("imports") {
        Some(value) => assignments(builder, value)?,
        None => Vec::new(),
    };
    let place = name_value.span();
    let entry = builder.here();
    builder.endless = None;
    builder.may_end = false;
    if fields.get("period").is_some() {
        periodic(builder, &fields, &place)?;
    } else {
        for key in ["deadline", "late", "job_imports", "phase"] {
            if let Some(value) = fields.get(key) {
                return Err(
                    builder.error(&value.span(), format!("`{key}` belongs to a thread with a `period`"))
                );
            }
        }
        let body = fields.need(builder, "do")?;
        match fields.get("repeat") {
            None => actions::read(builder, body)?,
            Some(value) => {
                let times = repetitions(builder, value)?;
                let opened = builder.open_loop(times, &value.span());
                actions::read(builder, body)?;
                builder.close_loop(opened, &value.span());
            }
        }
    }
    builder.emit(Operation::End, &place);
    let endless = builder.endless.take().filter(|_| !builder.may_end && !outside);
    if let (Some(span), None) = (&endless, duration) {
        return Err(builder
            .error(span, format!("`{name}` never ends, and the workload has no duration"))
            .hint("add duration = \"10s\" at the top of the file"));
    }
    let life_is_job = count_jobs(builder, entry) == 0 && !outside;
    builder.templates.push(Template {
        name,
        group,
        count,
        outside,
        start,
        affinity,
        initial,
        life_is_job,
        entry,
        place,
    });
    Ok(())
}

fn count_jobs(builder: &Builder, from: Address) -> usize {
    let program = &builder.operations[from as usize..];
    program.iter().filter(|operation| matches!(operation, Operation::JobBegin { .. })).count()
}

/// `period`: wait for the release, do the job, go on to the next release.
fn periodic(builder: &mut Builder, fields: &Fields, place: &Range<usize>) -> Result<(), Diagnostic> {
    use super::expression::{Binary, Name, Step};
    let period_value = fields.need(builder, "period")?;
    let period = time(builder, period_value)?;
    if period.constant() == Some(0.0) {
        return Err(builder.error(&period_value.span(), "the period cannot be 0"));
    }
    let deadline = match fields.get("deadline") {
        Some(value) => time(builder, value)?,
        None => period.clone(),
    };
    let skip = match fields.get("late") {
        None => false,
        Some(value) => match text(builder, value)? {
            "catch up" => false,
            "skip" => true,
            other => {
                return Err(builder
                    .error(&value.span(), format!("`{other}` is no way to be late"))
                    .hint("write \"catch up\" or \"skip\""));
            }
        },
    };
    let phase = match fields.get("phase") {
        Some(value) => time(builder, value)?,
        None => Expression::Constant(0.0),
    };
    let times = match fields.get("repeat") {
        Some(value) => repetitions(builder, value)?,
        None => None,
    };
    let body = fields.need(builder, "do")?;
    let release = builder.hidden("release");
    let release_expression = Expression::name(Name::Thread(release));
    let sum = |first: Step, rest: &Expression| {
        let mut steps = vec![first];
        match rest {
            Expression::Constant(value) => steps.push(Step::Push(*value)),
            Expression::Steps(more) => steps.extend(more.iter().copied()),
        }
        steps.push(Step::Binary(Binary::Add));
        Expression::Steps(steps.into())
    };
    let first = sum(Step::Load(Name::Now), &phase);
    builder.emit(Operation::Set(Variable::Thread(release), first), place);
    let period_span = period_value.span();
    let opened = builder.open_loop(times, &period_span);
    if let Some(value) = fields.get("job_imports") {
        // `release` means the coming release here, although the job has not begun.
        let mut set = assignments(builder, value)?;
        for (_, expression) in &mut set {
            if let Expression::Steps(steps) = expression {
                let coming = |step: &mut Step| {
                    if *step == Step::Load(Name::Release) {
                        *step = Step::Load(Name::Thread(release));
                    }
                };
                steps.iter_mut().for_each(coming);
            }
        }
        builder.emit(Operation::SetAll(set.into()), &value.span());
    }
    builder.emit(Operation::SleepUntil(release_expression.clone()), &period_span);
    let due = sum(Step::Load(Name::Thread(release)), &deadline);
    let begin = Operation::JobBegin { release: Some(release_expression.clone()), deadline: Some(due) };
    builder.emit(begin, &period_span);
    actions::read_in_job(builder, body)?;
    builder.emit(Operation::JobEnd, &period_span);
    builder.emit(Operation::NextRelease { release, period: period.clone(), skip }, &period_span);
    builder.close_loop(opened, &period_span);
    Ok(())
}

/// `repeat = 10`, `repeat = "forever"` (None), or an expression.
pub(super) fn repetitions(builder: &mut Builder, value: &Value) -> Result<Option<Expression>, Diagnostic> {
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
type Entry<'a> = (String, Range<usize>, &'a Value<'a>);

/// The entries of a table in the order of the text; none if it is missing.
fn entries<'a>(builder: &Builder, value: Option<&'a Value<'a>>) -> Result<Vec<Entry<'a>>, Diagnostic> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let DeValue::Table(table) = value.get_ref() else {
        return Err(builder.error(&value.span(), "this should be a table, as in { name = 1 }"));
    };
    let mut entries: Vec<_> =
        table.iter().map(|(key, value)| (key.get_ref().to_string(), key.span(), value)).collect();
    entries.sort_by_key(|(_, span, _)| span.start);
    Ok(entries)
}

fn tables<'a>(builder: &Builder, top: &Fields<'a>, key: &str) -> Result<Vec<&'a Value<'a>>, Diagnostic> {
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
        DeValue::Float(float) => float.as_str().parse::<f64>().ok().filter(|number| number.is_finite()),
        DeValue::Boolean(truth) => Some(f64::from(*truth)),
        _ => None,
    };
    number.map(Expression::Constant).ok_or_else(|| {
        builder
            .error(&value.span(), "this should be a number, or an expression in quotes as \"uniform(1, 6)\"")
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
            Err(error.hint(format!("write it in quotes, as \"{}ms\"", number.trim_start_matches('-'))))
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

pub(super) fn integer(builder: &Builder, value: &Value, least: u64, most: u64) -> Result<u64, Diagnostic> {
    let number = match value.get_ref() {
        DeValue::Integer(integer) => i128::from_str_radix(integer.as_str(), integer.radix()).ok(),
        _ => None,
    };
    match number {
        Some(number) if number >= i128::from(least) && number <= i128::from(most) => Ok(number as u64),
        _ => {
            Err(builder.error(&value.span(), format!("this should be a whole number from {least} to {most}")))
        }
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
        self.get(key).ok_or_else(|| builder.error(&self.span, format!("{} needs `{key}`", self.what)))
    }
}
