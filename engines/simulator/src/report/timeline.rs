//! Draws the beginning of the run: a row per CPU and a row per thread, time to the right.

use std::fmt::Write;

use super::intervals::{State, end_of_recording, intervals};
use super::plot::{COLOURS, escaped, label, label_room};
use crate::duration::duration;
use crate::outcome::Outcome;
use crate::scheduler::Time;

/// Threads that get a row.
const MOST_ROWS: usize = 40;
/// CPUs that get a row.
const MOST_CPUS: usize = 16;
/// Intervals that are drawn; the drawing ends where there would be more, for the page must stay
/// small.
const MOST_BOXES: usize = 12_000;

const WIDTH: f64 = 860.0;
const ROW: f64 = 16.0;
const GAP: f64 = 14.0;

/// The drawing, and the time that it reaches to; None if nothing was recorded.
pub fn render(outcome: &Outcome) -> Option<(String, Time)> {
    let mut end = end_of_recording(outcome).min(outcome.figures.timeline);
    let mut boxes = intervals(outcome, end);
    if boxes.len() > MOST_BOXES {
        boxes.sort_by_key(|interval| interval.from);
        end = boxes[MOST_BOXES].from;
        boxes = intervals(outcome, end);
    }
    if boxes.is_empty() || end <= 0 {
        return None;
    }
    let recorder = &outcome.figures.recorder;
    let shown: Vec<u32> = (0..recorder.threads.len() as u32)
        .filter(|&serial| !recorder.threads[serial as usize].outside)
        .take(MOST_ROWS)
        .collect();
    let cpus = outcome.cpus().len().min(MOST_CPUS);
    let first_thread = cpus as f64 * ROW + GAP;
    let height = first_thread + shown.len() as f64 * ROW;
    let names: Vec<String> = shown.iter().map(|&serial| outcome.recorded_name(serial)).collect();
    let left = label_room(names.iter().map(String::as_str).chain(["CPU 00"]));
    let x = |time: Time| left + time as f64 / end as f64 * WIDTH;
    let mut svg =
        format!("<svg viewBox=\"0 0 {} {}\" role=\"img\">", left + WIDTH + 40.0, height + 24.0);
    axis(&mut svg, left, end, height);
    for cpu in 0..cpus {
        svg += &label(left - 6.0, (cpu + 1) as f64 * ROW - 4.0, &format!("CPU {cpu}"));
    }
    for (row, name) in names.iter().enumerate() {
        svg += &label(left - 6.0, first_thread + (row + 1) as f64 * ROW - 4.0, name);
    }
    for interval in &boxes {
        let (from, width) = (x(interval.from), (x(interval.to) - x(interval.from)).max(0.3));
        let colour = recorder.threads[interval.thread as usize].group as usize % COLOURS;
        let row =
            shown.binary_search(&interval.thread).ok().map(|row| first_thread + row as f64 * ROW);
        let mut rectangle = |top: f64, class: &str, what: &str| {
            let _ = write!(
                svg,
                "<rect x=\"{from:.1}\" y=\"{:.0}\" width=\"{width:.1}\" height=\"{}\" \
                    class=\"{class}\"><title>{} {what}, {} to {}</title></rect>",
                top + 2.0,
                ROW - 4.0,
                escaped(&outcome.recorded_name(interval.thread)),
                duration(interval.from),
                duration(interval.to)
            );
        };
        match interval.state {
            State::Running(cpu) => {
                if (cpu as usize) < cpus {
                    rectangle(
                        f64::from(cpu) * ROW,
                        &format!("c{colour}"),
                        &format!("on CPU {cpu}"),
                    );
                }
                if let Some(top) = row {
                    rectangle(top, &format!("c{colour}"), &format!("running on CPU {cpu}"));
                }
            }
            State::Ready => row.into_iter().for_each(|top| rectangle(top, "ready", "ready")),
            State::Suspended => {
                row.into_iter().for_each(|top| rectangle(top, "suspended", "suspended"))
            }
            // What a thread does not want needs no ink.
            State::Waiting | State::InOut => {}
        }
    }
    Some((svg + "</svg>", end))
}

fn axis(svg: &mut String, left: f64, end: Time, height: f64) {
    for tenth in 0..=10 {
        let time = end / 10 * tenth;
        let x = left + tenth as f64 / 10.0 * WIDTH;
        let _ = write!(
            svg,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"0\" y2=\"{height:.0}\" class=\"grid\"/>\
             <text x=\"{x:.1}\" y=\"{:.0}\" class=\"middle dim\">{}</text>",
            height + 16.0,
            duration(time)
        );
    }
}
