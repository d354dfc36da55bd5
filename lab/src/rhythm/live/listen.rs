//! Listens to what a player does, from inside the kernel.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;
use attune_rhythm::recording::{self, Kind};
use attune_tracer::{Settings, Tracer, descendants};

/// How often the tracer's ring is emptied.
const ROUND: Duration = Duration::from_millis(20);

/// A tracer on one process and its children.
pub struct Ear(Tracer);

/// Events in order of time, in seconds of CLOCK_MONOTONIC.
pub type Heard = Vec<recording::Event>;

impl Ear {
    /// All that a player does, or only when it makes these system calls.
    pub fn on(process: u32, calls: Option<Vec<u32>>) -> Result<Ear> {
        let transitions = calls.is_none();
        let mut tracer =
            Tracer::load(Settings { exits: false, transitions, calls, ..Settings::default() })?;
        for process in descendants(process) {
            tracer.select(process, true)?;
        }
        tracer.attach()?;
        Ok(Ear(tracer))
    }

    /// Listens for so long.
    pub fn listen(&mut self, time: Duration) -> Heard {
        let begun = Instant::now();
        let mut events = Vec::new();
        while begun.elapsed() < time {
            sleep(ROUND);
            self.0.drain(&mut events);
        }
        let mut heard: Heard = events.iter().filter_map(event).collect();
        heard.sort_by(|a, b| a.time.total_cmp(&b.time));
        heard
    }
}

fn event(event: &attune_tracer::Event) -> Option<recording::Event> {
    use attune_tracer::Kind as Seen;
    let (kind, number) = match event.kind {
        Seen::Enter(call) => (Kind::Enter, Some(u64::from(call))),
        Seen::Wake => (Kind::Wake, None),
        Seen::Block { cpu_ns } => (Kind::Block, cpu_ns),
        Seen::Exit(_) | Seen::Start | Seen::End => return None,
    };
    Some(recording::Event {
        time: event.time as f64 / 1e9,
        thread: Some(event.thread),
        kind,
        number,
    })
}

/// When mplayer hands a frame to the X server: the first write to it after a pause. Seconds.
pub fn frames(heard: &Heard) -> Vec<f64> {
    /// Calls that belong to one frame follow each other within so many seconds.
    const FRAME: f64 = 0.004;
    let mut frames: Vec<f64> = Vec::new();
    let mut last = f64::MIN;
    for event in heard {
        if event.time - last > FRAME {
            frames.push(event.time);
        }
        last = event.time;
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_close_together_are_one_frame() {
        let times = [0.0, 0.001, 0.040, 0.0401, 0.080];
        let heard: Heard = times
            .iter()
            .map(|&time| recording::Event { time, thread: None, kind: Kind::Enter, number: None })
            .collect();
        assert_eq!(frames(&heard), [0.0, 0.040, 0.080]);
    }
}
