//! Shows the recording as a trace in Chrome's JSON format, which Perfetto opens: a track per CPU
//! with the threads that ran there, a track per thread with its states, a counter of ready threads,
//! marks where a deadline was missed and where a thread moved to another instance.
//!
//! Times in the format are microseconds; three decimals keep them exact to the nanosecond.

use super::intervals::{Interval, State, end_of_recording, intervals};
use crate::outcome::Outcome;
use crate::recorder::{Record, What};
use crate::scheduler::Time;

/// Where a machine's tracks are. Perfetto groups tracks by process: one stands for the machine, one
/// for its workload.
#[derive(Clone, Copy, Debug)]
pub struct Place<'n> {
    /// Its number among the machines.
    pub number: u32,
    /// Its name, empty for the only one.
    pub name: &'n str,
    /// When its own clock began.
    pub start: Time,
}

impl Place<'_> {
    fn machine(self) -> u32 {
        2 * self.number + 1
    }

    fn workload(self) -> u32 {
        2 * self.number + 2
    }
}

pub fn render(outcome: &Outcome) -> String {
    let events = events(outcome, Place { number: 0, name: "", start: 0 });
    let truncated = outcome.figures.recorder.truncated;
    let (policy, workload) = (outcome.policy(), outcome.workload());
    document(&[events], policy, workload, outcome.seed(), truncated)
}

/// A trace of the events of several machines.
pub fn document(
    events: &[String],
    policy: &str,
    workload: &str,
    seed: u64,
    truncated: bool,
) -> String {
    format!(
        "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{}\n],\"otherData\":{{\"scheduler\":{},\
         \"workload\":{},\"seed\":\"{seed}\",\"truncated\":\"{truncated}\"}}}}\n",
        events.join(",\n"),
        quoted(policy),
        quoted(workload),
    )
}

/// The events of one machine, separated by commas.
pub fn events(outcome: &Outcome, place: Place<'_>) -> String {
    let mut trace = Trace { text: String::new(), first: true, place };
    names(outcome, &mut trace);
    let end = end_of_recording(outcome);
    for Interval { thread, state, from, to } in intervals(outcome, end) {
        let track = thread + 1;
        let (machine, workload) = (place.machine(), place.workload());
        let (at, lasts) = (micros(place.start + from), micros(to - from));
        let span = format!("\"ph\":\"X\",\"ts\":{at},\"dur\":{lasts}");
        if let State::Running(cpu) = state {
            let name = quoted(&outcome.recorded_name(thread));
            trace.event(&format!("{span},\"pid\":{machine},\"tid\":{},\"name\":{name}", cpu + 1));
            trace.event(&format!(
                "{span},\"pid\":{workload},\"tid\":{track},\"name\":\"running\",\
                 \"args\":{{\"cpu\":{cpu}}}"
            ));
        } else {
            let name = quoted(state.name());
            trace.event(&format!("{span},\"pid\":{workload},\"tid\":{track},\"name\":{name}"));
        }
    }
    marks_and_counter(outcome, end, &mut trace);
    trace.text
}

fn names(outcome: &Outcome, trace: &mut Trace<'_>) {
    let place = trace.place;
    let mut named = |what: &str, pid: u32, tid: u32, name: &str| {
        let name = quoted(name);
        trace.event(&format!(
            "\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"name\":\"{what}\",\
             \"args\":{{\"name\":{name}}}"
        ));
    };
    let (machine, workload) = (place.machine(), place.workload());
    let of = if place.name.is_empty() { String::new() } else { format!("{}: ", place.name) };
    named("process_name", machine, 0, &format!("{of}CPUs"));
    named("process_name", workload, 0, &format!("{of}threads"));
    for cpu in 0..outcome.cpus().len() as u32 {
        named("thread_name", machine, cpu + 1, &format!("CPU {cpu}"));
    }
    for (serial, recorded) in outcome.figures.recorder.threads.iter().enumerate() {
        if !recorded.outside {
            named(
                "thread_name",
                workload,
                serial as u32 + 1,
                &outcome.recorded_name(serial as u32),
            );
        }
    }
}

fn marks_and_counter(outcome: &Outcome, end: Time, trace: &mut Trace<'_>) {
    let (machine, workload) = (trace.place.machine(), trace.place.workload());
    let start = trace.place.start;
    let recorder = &outcome.figures.recorder;
    let mut is_ready = vec![false; recorder.threads.len()];
    let mut ready = 0i64;
    let mut shown = None;
    let mut records = recorder.records.iter().take_while(|record| record.at <= end).peekable();
    while let Some(&Record { at, thread, what }) = records.next() {
        match what {
            What::Job { late: true } => trace.event(&format!(
                "\"ph\":\"i\",\"s\":\"t\",\"ts\":{},\"pid\":{workload},\"tid\":{},\
                 \"name\":\"deadline missed\"",
                micros(start + at),
                thread + 1
            )),
            What::Moved { from, to } => trace.event(&format!(
                "\"ph\":\"i\",\"s\":\"t\",\"ts\":{},\"pid\":{workload},\"tid\":{},\
                 \"name\":\"moved\",\"args\":{{\"from_instance\":{from},\"to_instance\":{to}}}",
                micros(start + at),
                thread + 1
            )),
            What::Created | What::Job { late: false } => {}
            _ => {
                let now = what == What::Ready;
                ready += i64::from(now) - i64::from(is_ready[thread as usize]);
                is_ready[thread as usize] = now;
            }
        }
        // Only the last of several changes at one time counts.
        if records.peek().is_none_or(|next| next.at > at) && shown != Some(ready) {
            shown = Some(ready);
            trace.event(&format!(
                "\"ph\":\"C\",\"ts\":{},\"pid\":{machine},\"name\":\"ready \
                    threads\",\"args\":{{\"ready\":{ready}}}",
                micros(start + at)
            ));
        }
    }
}

struct Trace<'n> {
    text: String,
    first: bool,
    place: Place<'n>,
}

impl Trace<'_> {
    fn event(&mut self, fields: &str) {
        if !std::mem::take(&mut self.first) {
            self.text += ",\n";
        }
        self.text += "{";
        self.text += fields;
        self.text += "}";
    }
}

fn micros(time: Time) -> String {
    format!("{}.{:03}", time / 1000, time % 1000)
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use crate::testing::Fifo;
    use crate::{Options, Workload, simulate};

    #[test]
    fn a_trace_is_json_whose_cpu_tracks_hold_the_cpu_time_of_threads() {
        let text = r#"
            duration = "100ms"
            [[thread]]
            name = "a \"b\""
            count = 3
            repeat = "forever"
            do = [{ compute = "3ms" }, { sleep = "2ms" }]
        "#;
        let workload = Workload::from_toml(text, "w.toml").unwrap();
        let options = Options { cpus: Some(2), trace: true, ..Options::default() };
        let outcome = simulate(&mut Fifo::default(), &workload, &options).unwrap();
        let trace: serde_json::Value = serde_json::from_str(&outcome.perfetto()).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let on_cpus: f64 = events
            .iter()
            .filter(|event| event["ph"] == "X" && event["pid"] == 1)
            .map(|event| event["dur"].as_f64().unwrap())
            .sum();
        assert_eq!((on_cpus * 1e3).round() as i64, outcome.total().cpu);
        let names: Vec<_> = events.iter().filter(|event| event["name"] == "thread_name").collect();
        assert_eq!(names.len(), 2 + 3);
        assert_eq!(names[2]["args"]["name"], "a \"b\".0");
        assert!(events.iter().any(|event| event["ph"] == "C" && event["args"]["ready"] == 1));
    }
}
