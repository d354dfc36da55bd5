//! The recording as a trace in Chrome's JSON format, which Perfetto opens: a track per CPU with the threads that ran
//! there, a track per thread with its states, a counter of ready threads, a mark where a deadline was missed.
//!
//! Times in the format are microseconds; three decimals keep them exact to the nanosecond.

use std::fmt::Write;

use super::intervals::{Interval, State, end_of_recording, intervals};
use crate::outcome::Outcome;
use crate::policy::Time;
use crate::recorder::{Record, What};

/// Perfetto groups tracks by process: one stands for the machine, one for the workload.
const MACHINE: u32 = 1;
const WORKLOAD: u32 = 2;

pub fn render(outcome: &Outcome) -> String {
    let mut trace =
        Trace { text: String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"), first: true };
    names(outcome, &mut trace);
    let end = end_of_recording(outcome);
    for Interval { thread, state, from, to } in intervals(outcome, end) {
        let track = thread + 1;
        let span = format!("\"ph\":\"X\",\"ts\":{},\"dur\":{}", micros(from), micros(to - from));
        if let State::Running(cpu) = state {
            let name = quoted(&outcome.recorded_name(thread));
            trace.event(&format!("{span},\"pid\":{MACHINE},\"tid\":{},\"name\":{name}", cpu + 1));
            trace.event(&format!(
                "{span},\"pid\":{WORKLOAD},\"tid\":{track},\"name\":\"running\",\"args\":{{\"cpu\":{cpu}}}"
            ));
        } else {
            let name = quoted(state.name());
            trace.event(&format!("{span},\"pid\":{WORKLOAD},\"tid\":{track},\"name\":{name}"));
        }
    }
    marks_and_counter(outcome, end, &mut trace);
    let truncated = outcome.figures.recorder.truncated;
    let _ = write!(
        trace.text,
        "\n],\"otherData\":{{\"scheduler\":{},\"workload\":{},\"seed\":\"{}\",\"truncated\":\"{truncated}\"}}}}\n",
        quoted(outcome.policy()),
        quoted(outcome.workload()),
        outcome.seed()
    );
    trace.text
}

fn names(outcome: &Outcome, trace: &mut Trace) {
    let mut named = |what: &str, pid: u32, tid: u32, name: &str| {
        let name = quoted(name);
        trace.event(&format!(
            "\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"name\":\"{what}\",\"args\":{{\"name\":{name}}}"
        ));
    };
    named("process_name", MACHINE, 0, "CPUs");
    named("process_name", WORKLOAD, 0, "threads");
    for cpu in 0..outcome.cpus().len() as u32 {
        named("thread_name", MACHINE, cpu + 1, &format!("CPU {cpu}"));
    }
    for (serial, recorded) in outcome.figures.recorder.threads.iter().enumerate() {
        if !recorded.outside {
            named("thread_name", WORKLOAD, serial as u32 + 1, &outcome.recorded_name(serial as u32));
        }
    }
}

fn marks_and_counter(outcome: &Outcome, end: Time, trace: &mut Trace) {
    let recorder = &outcome.figures.recorder;
    let mut is_ready = vec![false; recorder.threads.len()];
    let mut ready = 0i64;
    let mut shown = None;
    let mut records = recorder.records.iter().take_while(|record| record.at <= end).peekable();
    while let Some(&Record { at, thread, what }) = records.next() {
        match what {
            What::Job { late: true } => trace.event(&format!(
                "\"ph\":\"i\",\"s\":\"t\",\"ts\":{},\"pid\":{WORKLOAD},\"tid\":{},\"name\":\"deadline missed\"",
                micros(at),
                thread + 1
            )),
            What::Created | What::Job { late: false } => {}
            _ => {
                let now = what == What::Ready;
                ready += i64::from(now) - i64::from(is_ready[thread as usize]);
                is_ready[thread as usize] = now;
            }
        }
        // Of several changes at one time only the last counts.
        if records.peek().is_none_or(|next| next.at > at) && shown != Some(ready) {
            shown = Some(ready);
            trace.event(&format!(
                "\"ph\":\"C\",\"ts\":{},\"pid\":{MACHINE},\"name\":\"ready threads\",\"args\":{{\"ready\":{ready}}}",
                micros(at)
            ));
        }
    }
}

struct Trace {
    text: String,
    first: bool,
}

impl Trace {
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
