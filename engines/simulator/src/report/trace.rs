//! Shows the recording as a trace that Perfetto opens: a track per CPU with the threads that ran
//! there, a track per thread with its states, a counter of ready threads, marks where a deadline
//! was missed and where a thread moved to another instance.

use attune_timeline::{Event, Timeline, Track, Value};

use super::intervals::{Interval, State, end_of_recording, intervals};
use crate::outcome::Outcome;
use crate::recorder::{Record, What};
use crate::scheduler::Time;

/// One machine of a trace.
#[derive(Clone, Copy)]
pub struct Machine<'n> {
    /// Its name, empty for the only one.
    pub name: &'n str,
    /// When its own clock began.
    pub start: Time,
    pub outcome: &'n Outcome,
}

/// A trace of machines that ran side by side; `what` is shown with their CPUs.
pub fn trace_of<'n>(machines: impl Iterator<Item = Machine<'n>>, what: &str) -> Vec<u8> {
    let mut timeline = Timeline::new(None);
    machines.for_each(|machine| machine.draw(&mut timeline, what));
    timeline.into_bytes()
}

pub fn render(outcome: &Outcome) -> Vec<u8> {
    let (policy, workload, seed) = (outcome.policy(), outcome.workload(), outcome.seed());
    let what = format!("{workload} under {policy}, seed {seed}");
    trace_of([Machine { name: "", start: 0, outcome }].into_iter(), &what)
}

impl Machine<'_> {
    fn draw(self, timeline: &mut Timeline, what: &str) {
        let of = if self.name.is_empty() { String::new() } else { format!("{}: ", self.name) };
        let truncated = self.outcome.is_trace_truncated();
        let cut = if truncated { "; the recording ends before the run" } else { "" };
        let machine = timeline.group(None, &format!("{of}CPUs"), &format!("{what}{cut}"));
        let cpus = 0..self.outcome.cpus().len();
        let cpus = cpus.map(|cpu| timeline.track(machine, &format!("CPU {cpu}"))).collect();
        let ready = timeline.counter(machine, "ready threads");
        let group = timeline.group(None, &format!("{of}threads"), "");
        let recorded = &self.outcome.figures.recorder.threads;
        let mut drawing = Drawing {
            machine: self,
            timeline,
            cpus,
            ready,
            group,
            threads: vec![None; recorded.len()],
        };
        for (serial, recorded) in recorded.iter().enumerate() {
            // Those outside have a track only if something is shown of them.
            if !recorded.outside {
                drawing.thread(serial as u32);
            }
        }
        let end = end_of_recording(self.outcome);
        drawing.states(end);
        drawing.marks_and_counter(end);
    }
}

struct Drawing<'t, 'n> {
    machine: Machine<'n>,
    timeline: &'t mut Timeline,
    cpus: Vec<Track>,
    ready: Track,
    /// The group of the threads.
    group: Track,
    /// By serial number.
    threads: Vec<Option<Track>>,
}

impl Drawing<'_, '_> {
    fn thread(&mut self, serial: u32) -> Track {
        *self.threads[serial as usize].get_or_insert_with(|| {
            self.timeline.track(self.group, &self.machine.outcome.recorded_name(serial))
        })
    }

    fn states(&mut self, end: Time) {
        let Machine { start, outcome, .. } = self.machine;
        for Interval { thread, state, from, to } in intervals(outcome, end) {
            let (from, to) = (start + from, start + to);
            let track = self.thread(thread);
            if let State::Running(cpu) = state {
                let name = outcome.recorded_name(thread);
                self.slice(self.cpus[cpu as usize], from, to, &Event::named(&name));
                let cpu = [("cpu", Value::Int(cpu.into()))];
                let event = Event { arguments: &cpu, ..Event::named(state.name()) };
                self.slice(track, from, to, &event);
            } else {
                self.slice(track, from, to, &Event::named(state.name()));
            }
        }
    }

    fn slice(&mut self, track: Track, from: Time, to: Time, event: &Event<'_>) {
        self.timeline.begin(from, track, event);
        self.timeline.end(to, track);
    }

    fn marks_and_counter(&mut self, end: Time) {
        let Machine { start, outcome, .. } = self.machine;
        let recorder = &outcome.figures.recorder;
        let mut is_ready = vec![false; recorder.threads.len()];
        let mut ready = 0i64;
        let mut shown = None;
        let mut records = recorder.records.iter().take_while(|record| record.at <= end).peekable();
        while let Some(&Record { at, thread, what }) = records.next() {
            match what {
                What::Job { late: true } => {
                    let track = self.thread(thread);
                    self.timeline.instant(start + at, track, &Event::named("deadline missed"));
                }
                What::Moved { from, to } => {
                    let track = self.thread(thread);
                    let instances = [
                        ("from instance", Value::Int(from.into())),
                        ("to instance", Value::Int(to.into())),
                    ];
                    let event = Event { arguments: &instances, ..Event::named("moved") };
                    self.timeline.instant(start + at, track, &event);
                }
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
                self.timeline.count(start + at, self.ready, ready);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use attune_timeline_reader::Trace;

    use crate::testing::Fifo;
    use crate::{Options, Workload, simulate};

    #[test]
    fn the_cpu_tracks_of_a_trace_hold_the_cpu_time_of_threads() {
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
        let trace = Trace::read(&outcome.perfetto());
        let cpus: Vec<_> = trace.of_group("CPUs").filter(|track| !track.is_counter).collect();
        let names = |tracks: &[&attune_timeline_reader::Track]| {
            tracks.iter().map(|track| track.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&cpus), ["CPU 0", "CPU 1"]);
        let stays = || cpus.iter().flat_map(|cpu| &cpu.slices);
        assert_eq!(stays().map(|stay| stay.lasts() as i64).sum::<i64>(), outcome.total().cpu);
        assert!(stays().all(|stay| stay.depth == 0 && stay.end.is_some()));
        let threads: Vec<_> = trace.of_group("threads").collect();
        assert_eq!(names(&threads), ["a \"b\".0", "a \"b\".1", "a \"b\".2"]);
        let running = threads.iter().flat_map(|thread| thread.slices_named("running"));
        assert_eq!(running.map(|it| it.lasts() as i64).sum::<i64>(), outcome.total().cpu);
        assert!(trace.track("ready threads").values.iter().any(|(_, ready)| *ready == 1));
        assert_eq!(trace.track("CPUs").description, "w under test, seed 1");
    }
}
