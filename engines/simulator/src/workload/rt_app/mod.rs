//! Turns workloads of rt-app (its JSON, with the freedoms of workgen) into programs of the machine.
//!
//! rt-app's times are microseconds. What decides on CPUs there (policy, priority, SCHED_DEADLINE's
//! parameters) becomes variables of the thread, which a scheduler may import: `policy` (Linux's
//! number), `priority`, `nice`, `weight`, `prio`, `dl_runtime`, `dl_period`, `dl_deadline`. A
//! thread's jobs are the periods of its timers. The notes name what has no meaning here.

mod events;

use std::collections::HashMap;
use std::ops::Range;

use super::builder::{Builder, Settings};
use super::expression::Expression;
use super::json::{self, Entry, Kind, Value};
use super::program::{Operation, Variable};
use super::*;
use crate::scheduler::MAX_CPUS;

const MICROSECOND: f64 = 1e3;

/// How long a workload is run that would go on for ever.
const DEFAULT_DURATION: Time = 10_000_000_000;

pub(super) fn read(source: Source) -> Result<Workload, Diagnostic> {
    let document = json::parse(&source)?;
    let reader = Reader {
        builder: Builder::new(source),
        notes: Vec::new(),
        default_policy: 0,
        barrier_parties: HashMap::new(),
        timers: HashMap::new(),
        held: Vec::new(),
    };
    reader.document(&document)
}

struct Reader {
    builder: Builder,
    notes: Vec<Diagnostic>,
    default_policy: i64,
    barrier_parties: HashMap<String, u32>,
    /// The variable that holds a timer's next time. Timers called unique... belong to one task.
    timers: HashMap<String, Variable>,
    /// Locks taken so far in the phase being read.
    held: Vec<u16>,
}

/// Keys that set properties of threads and phases.
const PROPERTIES: [&str; 18] = [
    "instance",
    "delay",
    "loop",
    "phases",
    "policy",
    "priority",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "period",
    "deadline",
    "cpus",
    "util_min",
    "util_max",
    "membind_nodes",
    "nodes_membind",
    "taskgroup",
    "custom-slice",
];

const GLOBALS_WITHOUT_MEANING: [&str; 14] = [
    "calibration",
    "lock_pages",
    "logdir",
    "log_basename",
    "log_size",
    "ftrace",
    "gnuplot",
    "io_device",
    "mem_buffer_size",
    "cumulative_slack",
    "frag",
    "spacing",
    "pi_enabled",
    "taskgroups_mount",
];

impl Reader {
    fn document(mut self, document: &Value) -> Result<Workload, Diagnostic> {
        let top = self.object(document)?;
        let mut duration = None;
        for Entry { key, key_span, value } in top {
            match key.as_str() {
                "global" => duration = self.global(value)?,
                "tasks" | "resources" => {}
                _ => self.note(key_span, format!("`{key}` is ignored")),
            }
        }
        let Some(tasks) = top.iter().find(|entry| entry.key == "tasks") else {
            return Err(Diagnostic::new(format!(
                "{}: there is no \"tasks\"",
                self.builder.source.name
            ))
            .hint("this does not look like a workload of rt-app"));
        };
        let tasks = self.object(&tasks.value)?;
        if tasks.is_empty() {
            return Err(Diagnostic::new(format!(
                "{}: the workload has no tasks",
                self.builder.source.name
            )));
        }
        for (number, task) in tasks.iter().enumerate() {
            if self.builder.template_names.insert(task.key.clone(), number as u16).is_some() {
                return Err(self
                    .builder
                    .error(&task.key_span, format!("there is already a task `{}`", task.key)));
            }
            let instances = self.instances(&task.value)?;
            self.count_barriers(&task.value, instances)?;
        }
        for task in tasks {
            self.task(task)?;
        }
        if duration.is_none()
            && let Some(span) = self.builder.endless.clone()
        {
            self.note(&span, "nothing ends this workload, so that 10 s are simulated".into());
            duration = Some(DEFAULT_DURATION);
        }
        let name = self
            .builder
            .source
            .name
            .rsplit('/')
            .next()
            .unwrap_or("")
            .trim_end_matches(".json")
            .to_string();
        self.builder.finish(Settings {
            name,
            duration,
            cpus: None,
            cpus_per_cache: None,
            lock: LockCosts::default(),
            context_switch: 0,
            migration: 0,
            max_threads: DEFAULT_MAX_THREADS,
            notes: self.notes,
            changes: Vec::new(),
        })
    }

    fn global(&mut self, value: &Value) -> Result<Option<Time>, Diagnostic> {
        let mut duration = None;
        for Entry { key, key_span, value } in self.object(value)? {
            match key.as_str() {
                "duration" => {
                    let seconds = self.number(value)?;
                    duration = (seconds > 0.0).then_some((seconds * 1e9) as Time);
                }
                "default_policy" => self.default_policy = self.policy_number(value)?,
                "pi_enabled" if matches!(value.kind, Kind::Truth(true)) => {
                    self.note(key_span, "priority inheritance is left to the scheduler".into());
                }
                key if GLOBALS_WITHOUT_MEANING.contains(&key) => {}
                _ => self.note(key_span, format!("`{key}` is ignored")),
            }
        }
        Ok(duration)
    }

    fn instances(&self, task: &Value) -> Result<u32, Diagnostic> {
        match self.object(task)?.iter().find(|entry| entry.key == "instance") {
            Some(entry) => {
                let count = self.count(&entry.value)?;
                if count > f64::from(MOST_THREADS) {
                    return Err(self
                        .builder
                        .error(&entry.value.span, format!("more than {MOST_THREADS} threads")));
                }
                Ok(count as u32)
            }
            None => Ok(1),
        }
    }

    fn count_barriers(&mut self, value: &Value, instances: u32) -> Result<(), Diagnostic> {
        let Kind::Object(entries) = &value.kind else { return Ok(()) };
        for entry in entries {
            if events::event_of(&entry.key) == Some("barrier")
                && !PROPERTIES.contains(&entry.key.as_str())
            {
                let name = self.text(&entry.value)?.to_string();
                *self.barrier_parties.entry(name).or_default() += instances;
            } else {
                self.count_barriers(&entry.value, instances)?;
            }
        }
        Ok(())
    }

    fn task(&mut self, task: &Entry) -> Result<(), Diagnostic> {
        let entries = self.object(&task.value)?;
        let span = &task.key_span;
        let find =
            |key: &str| entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value);
        let start = match find("delay") {
            Some(delay) => self.count(delay)? * MICROSECOND,
            None => 0.0,
        };
        let affinity = match find("cpus") {
            Some(cpus) => self.cpus(cpus)?,
            None => CpuSet::ALL,
        };
        let times = match find("loop") {
            Some(times) => self.repetitions(times)?,
            None => None,
        };
        self.timers.retain(|name, _| !name.starts_with("unique"));
        let mut initial = self.scheduling(entries, Some(self.default_policy))?;
        let entry = self.builder.here();
        let opened = self.builder.open_loop(times, span);
        match find("phases") {
            None => self.events(&task.key, entries, &mut initial)?,
            Some(phases) => {
                for phase in self.object(phases)? {
                    self.phase(&task.key, &phase.value, affinity, &mut initial)?;
                }
            }
        }
        self.builder.close_loop(opened, span);
        self.builder.emit(Operation::End, span);
        let program = &self.builder.operations[entry as usize..];
        let life_is_job =
            !program.iter().any(|operation| matches!(operation, Operation::JobBegin { .. }));
        let group = self.builder.group(&task.key);
        let count = self.instances(&task.value)?;
        self.builder.templates.push(Template {
            name: task.key.clone(),
            group,
            count,
            outside: false,
            start: Expression::Constant(start),
            affinity,
            initial,
            life_is_job,
            periodic: None,
            entry,
            place: span.clone(),
        });
        Ok(())
    }

    fn phase(
        &mut self,
        task: &str,
        value: &Value,
        affinity: CpuSet,
        initial: &mut Vec<(Variable, Expression)>,
    ) -> Result<(), Diagnostic> {
        let entries = self.object(value)?;
        let find =
            |key: &str| entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value);
        let times = match find("loop") {
            Some(times) => self.repetitions(times)?,
            None => Some(Expression::Constant(1.0)),
        };
        let cpus = match find("cpus") {
            Some(cpus) => self.cpus(cpus)?,
            None => affinity,
        };
        // Without CPUs of its own a phase has its task's again, which another phase may have
        // changed.
        if find("cpus").is_some() || cpus != CpuSet::ALL {
            self.builder.emit(Operation::Affinity(Box::new(cpus)), &value.span);
        }
        let scheduling = self.scheduling(entries, None)?;
        if !scheduling.is_empty() {
            self.builder.emit(Operation::SetAll(scheduling.into()), &value.span);
        }
        let opened = self.builder.open_loop(times, &value.span);
        self.events(task, entries, initial)?;
        self.builder.close_loop(opened, &value.span);
        Ok(())
    }

    /// What decides on CPUs in rt-app, as variables.
    fn scheduling(
        &mut self,
        entries: &[Entry],
        default_policy: Option<i64>,
    ) -> Result<Vec<(Variable, Expression)>, Diagnostic> {
        let find =
            |key: &str| entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value);
        let policy = match find("policy") {
            Some(value) => Some(self.policy_number(value)?),
            None => default_policy,
        };
        let mut set = Vec::new();
        let mut assign = |reader: &mut Reader, name: &str, value: f64| -> Result<(), Diagnostic> {
            set.push((reader.builder.variable(name, &(0..0))?, Expression::Constant(value)));
            Ok(())
        };
        if let Some(policy) = policy {
            assign(self, "policy", policy as f64)?;
        }
        if let Some(value) = find("priority") {
            let priority = self.number(value)?;
            assign(self, "priority", priority)?;
            match policy {
                Some(POLICY_FIFO | POLICY_ROUND_ROBIN) => assign(self, "prio", priority)?,
                Some(POLICY_DEADLINE) => {}
                // Linux: one step of nice is a quarter more or less.
                _ => {
                    assign(self, "nice", priority)?;
                    assign(self, "weight", libm::round(1024.0 * libm::pow(1.25, -priority)))?;
                }
            }
        }
        for (keys, name) in [
            (["dl-runtime", "dl-runtime"], "dl_runtime"),
            (["dl-period", "period"], "dl_period"),
            (["dl-deadline", "deadline"], "dl_deadline"),
        ] {
            if let Some(value) = find(keys[0]).or_else(|| find(keys[1])) {
                let time = self.count(value)? * MICROSECOND;
                assign(self, name, time)?;
            }
        }
        Ok(set)
    }

    // ---- names and values ----

    fn condition(&mut self, name: String) -> u16 {
        let number = self.builder.condition(&name);
        // rt-app does not mind a condition that nobody signals.
        self.builder.conditions[number as usize].given = true;
        number
    }

    fn lock(&mut self, value: &Value) -> Result<u16, Diagnostic> {
        let name = self.text(value)?.to_string();
        Ok(self.builder.lock(&name))
    }

    fn barrier(&mut self, name: String) -> u16 {
        if let Some(number) = self.builder.barriers.iter().position(|barrier| barrier.name == name)
        {
            return number as u16;
        }
        let parties = self.barrier_parties.get(&name).copied().unwrap_or(1);
        self.builder.barriers.push(Barrier { name, parties });
        (self.builder.barriers.len() - 1) as u16
    }

    fn policy_number(&self, value: &Value) -> Result<i64, Diagnostic> {
        match self.text(value)? {
            "SCHED_OTHER" => Ok(0),
            "SCHED_FIFO" => Ok(POLICY_FIFO),
            "SCHED_RR" => Ok(POLICY_ROUND_ROBIN),
            "SCHED_BATCH" => Ok(3),
            "SCHED_IDLE" => Ok(5),
            "SCHED_DEADLINE" => Ok(POLICY_DEADLINE),
            other => {
                Err(self.builder.error(&value.span, format!("`{other}` is no scheduling policy")))
            }
        }
    }

    fn repetitions(&self, value: &Value) -> Result<Option<Expression>, Diagnostic> {
        let times = self.number(value)?;
        Ok((times >= 0.0).then_some(Expression::Constant(times)))
    }

    fn cpus(&self, value: &Value) -> Result<CpuSet, Diagnostic> {
        let Kind::List(list) = &value.kind else {
            return Err(self.builder.error(&value.span, "this should be a list of CPUs"));
        };
        let mut set = CpuSet::EMPTY;
        for cpu in list {
            let number = self.count(cpu)?;
            if number >= f64::from(MAX_CPUS) {
                return Err(self
                    .builder
                    .error(&cpu.span, format!("CPUs are numbered below {MAX_CPUS}")));
            }
            set.insert(number as u32);
        }
        if set.is_empty() {
            return Err(self
                .builder
                .error(&value.span, "a thread needs at least one CPU to run on"));
        }
        Ok(set)
    }

    fn object<'v>(&self, value: &'v Value) -> Result<&'v [Entry], Diagnostic> {
        match &value.kind {
            Kind::Object(entries) => Ok(entries),
            _ => Err(self.builder.error(&value.span, "this should be an object in braces")),
        }
    }

    fn number(&self, value: &Value) -> Result<f64, Diagnostic> {
        match value.kind {
            Kind::Number(number) => Ok(number),
            _ => Err(self.builder.error(&value.span, "this should be a number")),
        }
    }

    /// A number that is no less than 0.
    fn count(&self, value: &Value) -> Result<f64, Diagnostic> {
        match self.number(value)? {
            number if number >= 0.0 => Ok(number),
            _ => Err(self.builder.error(&value.span, "this cannot be negative")),
        }
    }

    fn text<'v>(&self, value: &'v Value) -> Result<&'v str, Diagnostic> {
        match &value.kind {
            Kind::Text(text) => Ok(text),
            _ => Err(self.builder.error(&value.span, "this should be a text in quotes")),
        }
    }

    /// A text that may be left empty or out.
    fn text_or<'v>(&self, value: &'v Value, otherwise: &'v str) -> Result<&'v str, Diagnostic> {
        match &value.kind {
            Kind::Nothing => Ok(otherwise),
            Kind::Text(text) if text.is_empty() => Ok(otherwise),
            _ => self.text(value),
        }
    }

    fn note(&mut self, span: &Range<usize>, message: String) {
        let note = self.builder.error(span, message);
        self.notes.push(note);
    }
}

/// Linux's numbers of scheduling policies.
const POLICY_FIFO: i64 = 1;
const POLICY_ROUND_ROBIN: i64 = 2;
const POLICY_DEADLINE: i64 = 6;
