//! Experiment `thread-metric`: three tests of the benchmark for real-time kernels, on Attune and on
//! FreeRTOS.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use attune_backend_c::Policy;
use attune_backend_c::embedded::Files;
use attune_embedded::firmware::{Board, Firmware, available};
use attune_language::check;
use attune_language::engine::Engine;
use attune_language::resolve::SourceText;
use serde::Serialize;
use serde_json::json;

use super::freertos;
use crate::experiment::{Options, Procedure, Progress};
use crate::report::{Claim, Picture, Report, Table};
use crate::{files, plot};

pub const EXPERIMENT: Procedure = Procedure {
    name: "thread-metric",
    about: "Thread-Metric on a microcontroller: instructions of a switch, a semaphore and a \
            message, ours and FreeRTOS's",
    check: |_| {
        available(Board::Mps2An385)?;
        freertos::available()
    },
    run,
};

macro_rules! example {
    ($name:literal) => {
        include_str!(concat!("../../../examples/thread_metric/", $name))
    };
}

const TESTS: [(&str, &str); 2] =
    [("tests.c", example!("tests.c")), ("thread_metric.h", example!("thread_metric.h"))];
const OURS: [(&str, &str); 2] =
    [("metric_port.c", example!("port.c")), ("attune_config.h", example!("attune_config.h"))];
const THEIRS: [(&str, &str); 4] = [
    ("metric_port.c", example!("freertos/port.c")),
    ("FreeRTOSConfig.h", example!("freertos/FreeRTOSConfig.h")),
    ("stdlib.h", example!("freertos/include/stdlib.h")),
    ("string.h", example!("freertos/include/string.h")),
];
/// The board's file includes it.
const THEIR_ATTUNE: &str = example!("freertos/include/attune.h");

/// In the order of `TEST` in tests.c.
const NAMES: [&str; 3] = ["cooperative", "synchronisation", "message"];

/// The emulator spends 32 ns on an instruction; the board's counter counts 40 ns.
const SHIFT: u32 = 5;
const COUNT_NS: f64 = 40.0;

#[derive(Serialize)]
struct Row {
    test: &'static str,
    kernel: &'static str,
    flags: &'static str,
    /// One turn: a switch; taking and giving; sending and receiving.
    instructions: f64,
    flash: u32,
}

fn run(options: &Options, progress: Progress) -> Result<Report> {
    let ours = ours()?;
    let theirs = Files { c: String::new(), h: THEIR_ATTUNE.to_owned(), ..ours.clone() };
    let freertos = freertos::files()?;
    let freertos: Vec<(&str, &str)> =
        freertos.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let ours_project: Vec<_> = TESTS.into_iter().chain(OURS).collect();
    let their_project: Vec<_> = TESTS.into_iter().chain(THEIRS).chain(freertos).collect();

    let mut rows = Vec::new();
    for (test, name) in NAMES.into_iter().enumerate() {
        progress(name);
        for (kernel, attune, project, flags) in [
            ("Attune", &ours, &ours_project, "-O2"),
            ("FreeRTOS", &theirs, &their_project, "-O2"),
            ("Attune, stacks checked", &ours, &ours_project, "-O2 -DATTUNE_CHECK_STACKS=1"),
            ("Attune", &ours, &ours_project, "-Os"),
            ("FreeRTOS", &theirs, &their_project, "-Os"),
        ] {
            let folder = options.folder.join(format!("{name}-{}", rows.len()));
            files::create_folder(&folder)?;
            let test = format!("-DTEST={test}");
            // Others' warnings are not ours.
            let flags_of: Vec<&str> = flags.split(' ').chain(["-w", &test]).collect();
            let (instructions, flash) = measure(attune, project, &flags_of, &folder)?;
            rows.push(Row { test: name, kernel, flags, instructions, flash });
        }
    }

    let cells = |row: &Row| {
        vec![
            row.test.to_owned(),
            row.kernel.to_owned(),
            row.flags.split(' ').next().unwrap_or_default().to_owned(),
            format!("{:.1}", row.instructions),
            row.flash.to_string(),
        ]
    };
    let columns = ["test", "kernel", "gcc", "instructions a turn", "flash, bytes"];
    let mut table = Table::new("Thread-Metric", &columns, rows.iter().map(cells).collect());
    table.notes.push("a turn of 10000, its loop included; counted by QEMU".to_owned());
    table.notes.push(
        "published figures count turns in 30 s on real boards; none is for this board".to_owned(),
    );
    let of = |test: usize, kernel: &str| {
        let found = rows
            .iter()
            .find(|row| row.test == NAMES[test] && row.kernel == kernel && row.flags == "-O2");
        found.map_or(f64::NAN, |row| row.instructions)
    };
    let claims = (0..2).map(|test| {
        let (ours, theirs) = (of(test, "Attune"), of(test, "FreeRTOS"));
        Claim::new(
            format!("{}: fewer instructions than FreeRTOS", NAMES[test]),
            Some((ours < theirs, format!("{ours:.1} to {theirs:.1}"))),
        )
    });
    let claims = claims.collect();
    let bars: Vec<(String, f64)> = rows
        .iter()
        .filter(|row| row.flags == "-O2")
        .map(|row| (format!("{}, {}", row.test, row.kernel), row.instructions))
        .collect();
    let picture = Picture::new("Instructions a turn", plot::bars("instructions a turn", &bars)?);
    let report = Report::new("thread-metric", "Thread-Metric on a Cortex-M3").saying(&[
        "Cooperative: five threads give the processor to each other. Synchronisation: a thread \
         takes a semaphore and gives it back. Message: a thread sends itself 16 bytes. The tests \
         and both ports are our own text; FreeRTOS is V11.2.0, everything static, without hooks.",
        "Neither kernel checks stacks here, as FreeRTOS's configuration asks; a row says what the \
         check costs. The tests of preemption and of interrupts that preempt do not apply to a \
         cooperative kernel, and ours has no memory pools.",
        "The emulator counts instructions, not cycles, and an exception's entry and exit, of which \
         each switch of FreeRTOS has one, are none: that flatters FreeRTOS.",
    ]);
    Ok(Report { tables: vec![table], claims, pictures: vec![picture], data: json!(rows), ..report })
}

/// The policy of the example, as the embedded engine compiles it.
fn ours() -> Result<Files> {
    let text = example!("thread_metric.sched");
    let source = SourceText { name: "thread_metric.sched".into(), text: text.into() };
    let mut nothing: &[(&str, &str)] = &[];
    let checked = check(&source, &mut nothing, &Default::default());
    let program = checked.program.as_ref().context("the example's scheduler has errors")?;
    let verdicts = &checked.engine(Engine::Embedded).verdicts;
    Ok(attune_embedded::source(Policy { program, verdicts, sources: &checked.sources }, false)?)
}

/// Instructions of a turn, and the flash that the firmware takes.
fn measure(
    attune: &Files,
    project: &[(&str, &str)],
    flags: &[&str],
    folder: &Path,
) -> Result<(f64, u32)> {
    let image = Firmware { board: Board::Mps2An385, attune, project, flags }.build(folder)?;
    let outcome = image.run(SHIFT)?;
    ensure!(outcome.status == Some(0), "the firmware ended early: {}", outcome.said);
    let number = |word: &str| {
        let line = outcome.said.lines().find_map(|line| line.strip_prefix(word));
        line.and_then(|number| number.parse::<f64>().ok()).context("a number")
    };
    let instructions = number("counts ")? * COUNT_NS / f64::from(1 << SHIFT) / number("turns ")?;
    Ok((instructions, image.footprint()?.flash))
}
