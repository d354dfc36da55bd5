//! How often the analyser is right, on recordings whose true rates are known: `cargo run --release
//! --example evaluate -- [LIST] [-v | --leave-one-out]`.
//!
//! LIST (default: traces/recordings.txt of this crate) is described in recordings.rs. For each
//! recording and each method, consecutive windows are counted as right (within 1 %), precise
//! (within 0.1 % or three times its own standard error), harmonic (a multiple or a part), wrong, or
//! silent. Windows in which the program did not keep its rate are counted apart. `-v` prints each
//! window's answer. `--leave-one-out` instead chooses the constants anew for each program on the
//! others' recordings, and judges them on its own.

mod leave_one_out;
mod recordings;

use attune_rhythm::windows::consecutive;
use attune_rhythm::{Method, Settings};

use recordings::{Count, list, recordings};

/// CPU time of this thread, in seconds.
fn cpu_time() -> f64 {
    attune_linux::time::thread_cpu_time() as f64 * 1e-9
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let verbose = arguments.iter().any(|argument| argument == "-v");
    let recordings = recordings(&list(&arguments));
    if arguments.iter().any(|argument| argument == "--leave-one-out") {
        return leave_one_out::run(&recordings);
    }
    let ours = Settings::default();
    let published = Settings { method: Method::Spectrum2010(Default::default()), ..ours };
    println!(
        "| window | set | load | recording | method | windows | right % | precise % | among the \
            periods % | harmonic % | wrong % | silent % |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    for window in [0.5, 1.0, 2.0] {
        let mut sums: Vec<(String, [Count; 2])> = Vec::new();
        let (mut cost, mut analysed, mut dearest) = (0.0, 0usize, 0.0f64);
        for recording in &recordings {
            let events = &recording.events;
            let group = format!("{} | {}", recording.set, recording.kind());
            let mut counts = [Count::default(); 2];
            let mut unkept = [Count::default(); 2];
            let mut answers = Vec::new();
            let mut ours_by_window = consecutive(events, window, &ours);
            loop {
                let begin = cpu_time();
                let Some((start, analysis)) = ours_by_window.next() else { break };
                let took = cpu_time() - begin;
                cost += took;
                analysed += 1;
                if analysis.events <= 2_000 {
                    dearest = dearest.max(took);
                }
                let kept = recording.kept(start, window);
                let counts = if kept { &mut counts } else { &mut unkept };
                counts[0].add(&analysis, &recording.truth.rates(events, start, window));
                let answer =
                    analysis.frequency_hz.map_or("-".to_owned(), |found| format!("{found:.3}"));
                answers.push(if kept { answer } else { format!("({answer})") });
            }
            for (start, analysis) in consecutive(events, window, &published) {
                let counts = if recording.kept(start, window) { &mut counts } else { &mut unkept };
                counts[1].add(&analysis, &recording.truth.rates(events, start, window));
            }
            for (method, count) in ["evidence", "spectrum-2010"].iter().zip(&counts) {
                println!(
                    "| {window} s | {group} | {} | {method} | {} |",
                    recording.name,
                    count.row()
                );
            }
            for (group, counts) in
                [(group.clone(), counts), (format!("{group}, rate not kept"), unkept)]
            {
                match sums.iter_mut().find(|(known, _)| *known == group) {
                    Some((_, sum)) => *sum = [sum[0].plus(counts[0]), sum[1].plus(counts[1])],
                    None if counts[0].windows > 0 => sums.push((group, counts)),
                    None => {}
                }
            }
            if verbose {
                println!("<!-- {}: {} -->", recording.name, answers.join(" "));
            }
        }
        sums.sort_by(|a, b| a.0.cmp(&b.0));
        for (group, sum) in &sums {
            for (method, count) in ["evidence", "spectrum-2010"].iter().zip(sum) {
                println!("| {window} s | {group} | **all** | {method} | {} |", count.row());
            }
        }
        println!(
            "<!-- {window} s: {:.2} ms of CPU time a window on average, at most {:.2} ms with up \
                to 2000 events -->",
            1e3 * cost / analysed.max(1) as f64,
            1e3 * dearest
        );
    }
}
