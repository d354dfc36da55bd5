//! Reads Attune's own form of workloads (docs/workloads.md): tables of a TOML file to a
//! [`Workload`].

use ::toml::de::{DeTable, DeValue};

use super::actions;
use super::builder::{Builder, Settings};
use super::expression::Expression;
use super::program::{Operation, Variable};
use super::toml_values::*;
use super::*;
use crate::scheduler::MAX_CPUS;

pub(super) fn read(source: Source) -> Result<Workload, Diagnostic> {
    let text = source.text.clone();
    let document = DeTable::parse(&text).map_err(|error| {
        let location = source.locate(&error.span().unwrap_or(0..0));
        Diagnostic::new(format!("this is not TOML: {}", error.message())).at(location)
    })?;
    let mut builder = Builder::new(source);
    let top =
        Fields::new(&builder, document.get_ref(), document.span(), "a workload", &MACHINE_KEYS)?;
    let settings = settings(&mut builder, &top)?;
    if tables(&builder, &top, "thread")?.is_empty() {
        return Err(Diagnostic::new(format!(
            "{}: the workload has no threads",
            builder.source.name
        ))
        .hint("begin one with [[thread]]"));
    }
    machine(builder, &top, settings)
}

/// The keys of a machine's workload.
pub(super) const MACHINE_KEYS: [&str; 15] = [
    "name",
    "duration",
    "cpus",
    "cpus_per_cache",
    "scheduler_lock",
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
];

/// The workload of one machine: the whole file's, or a node's.
pub(super) fn machine(
    mut builder: Builder,
    top: &Fields,
    settings: Settings,
) -> Result<Workload, Diagnostic> {
    declarations(&mut builder, top)?;
    let threads = tables(&builder, top, "thread")?;
    let clients = tables(&builder, top, "client")?;
    name_templates(&mut builder, threads.iter().chain(&clients))?;
    for table in &threads {
        template(&mut builder, table, false, settings.duration)?;
    }
    for table in &clients {
        template(&mut builder, table, true, settings.duration)?;
    }
    let changes = changes(&mut builder, top)?;
    builder.finish(Settings { changes, ..settings })
}

pub(super) fn settings(builder: &mut Builder, top: &Fields) -> Result<Settings, Diagnostic> {
    let stem =
        builder.source.name.rsplit('/').next().unwrap_or("").trim_end_matches(".toml").to_string();
    let mut settings = Settings {
        name: stem,
        duration: None,
        cpus: None,
        cpus_per_cache: None,
        lock: LockCosts::default(),
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
    if let Some(value) = top.get("cpus_per_cache") {
        settings.cpus_per_cache = Some(integer(builder, value, 1, u64::from(MAX_CPUS))? as u32);
    }
    if let Some(value) = top.get("scheduler_lock") {
        let fields = Fields::of(builder, value, "[scheduler_lock]", &["hold", "near", "far"])?;
        let mut cost = |key| match fields.get(key) {
            Some(value) => fixed_time(builder, value),
            None => Ok(0),
        };
        settings.lock = LockCosts { hold: cost("hold")?, near: cost("near")?, far: cost("far")? };
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
    // The world around a cluster declares the cluster's channels.
    let shared = !builder.in_cluster && !builder.shared_channels.is_empty();
    let keys: &[&str] = if shared { &["capacity", "to"] } else { &["capacity"] };
    for (name, _, value) in entries(builder, top.get("channels"))? {
        let fields = Fields::of(builder, value, "a channel", keys)?;
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
    let mut initial = match fields.get("imports") {
        Some(value) => assignments(builder, value)?,
        None => Vec::new(),
    };
    let place = name_value.span();
    let entry = builder.here();
    builder.endless = None;
    builder.may_end = false;
    let mut jobs = None;
    if fields.get("period").is_some() {
        jobs = Some(periodic(builder, &fields, &mut initial)?);
    } else {
        for key in ["deadline", "late", "job_imports", "phase"] {
            if let Some(value) = fields.get(key) {
                return Err(builder
                    .error(&value.span(), format!("`{key}` belongs to a thread with a `period`")));
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
        periodic: jobs,
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
fn periodic(
    builder: &mut Builder,
    fields: &Fields,
    initial: &mut Vec<(Variable, Expression)>,
) -> Result<Periodic, Diagnostic> {
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
    // When the thread begins, not when it first runs: a thread that has to wait for its first turn
    // is late.
    initial.push((Variable::Thread(release), first));
    let period_span = period_value.span();
    let opened = builder.open_loop(times.clone(), &period_span);
    let limit = times.zip(opened.left);
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
    let begin =
        Operation::JobBegin { release: Some(release_expression.clone()), deadline: Some(due) };
    builder.emit(begin, &period_span);
    actions::read_in_job(builder, body)?;
    builder.emit(Operation::JobEnd, &period_span);
    builder.emit(Operation::NextRelease { release, period: period.clone(), skip }, &period_span);
    builder.close_loop(opened, &period_span);
    Ok(Periodic { release, period, deadline, skip, limit })
}
