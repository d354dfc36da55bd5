//! Experiment `weather`: the weather station under `weather` and under `round_robin`.

use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use attune_backend_c::Policy;
use attune_embedded::firmware::{Board, Firmware, Footprint, available};
use attune_language::check;
use attune_language::engine::Engine;
use serde::Serialize;
use serde_json::json;

use crate::experiment::{Options, Procedure, Progress};
use crate::report::{Claim, Picture, Report, Table};
use crate::{files, plot};

pub const EXPERIMENT: Procedure = Procedure {
    name: "weather",
    about: "a weather station's firmware on a microcontroller: its calculations under a policy of \
            its own and under round robin",
    check: |_| Ok(available(Board::Mps2An385)?),
    run,
};

const STATION: &str = include_str!("../../../examples/weather_station/station.c");
const CONFIG: &str = include_str!("../../../examples/weather_station/attune_config.h");
const POLICIES: [&str; 2] = ["round_robin", "weather"];

/// The emulator spends 32 ns on an instruction, near a real part of 25 MHz; the board's counter
/// counts 40 ns.
const SHIFT: u32 = 5;
const COUNT_NS: f64 = 40.0;

/// One firmware and its run.
#[derive(Serialize)]
struct Station {
    policy: &'static str,
    flash: u32,
    ram: u32,
    /// For each round of the calculations, all other threads' included.
    instructions: f64,
    /// How late the worst sample was, in ticks.
    late: u64,
    samples: Vec<u64>,
    refreshes: u64,
}

fn run(options: &Options, progress: Progress) -> Result<Report> {
    let rounds = if options.quick { 60_000 } else { 200_000 };
    let stations: Vec<Station> = POLICIES
        .into_iter()
        .map(|policy| {
            progress(&format!("the station under {policy}"));
            station(policy, rounds, options)
        })
        .collect::<Result<_>>()?;
    let [round_robin, weather] = &stations[..] else { unreachable!("two policies") };
    let row = |it: &Station| {
        vec![
            it.policy.to_owned(),
            format!("{:.1}", it.instructions),
            it.flash.to_string(),
            it.ram.to_string(),
            it.late.to_string(),
            it.refreshes.to_string(),
        ]
    };
    let columns = [
        "policy",
        "instructions a round",
        "flash, bytes",
        "RAM, bytes",
        "latest sample, ticks",
        "refreshes",
    ];
    let mut table = Table::new("The weather station", &columns, stations.iter().map(row).collect());
    table.notes.push(format!("{rounds} rounds; instructions of all threads, counted by QEMU"));
    let sooner = 1.0 - weather.instructions / round_robin.instructions;
    let larger = f64::from(weather.flash) / f64::from(round_robin.flash) - 1.0;
    let late = stations.iter().map(|station| station.late).max().unwrap_or(0);
    let percent = |part: f64| format!("{:.1} %", part * 100.0);
    let claims = vec![
        Claim::new(
            "calculation rounds come at least 25 % sooner than under round robin (published: \
             12.6 %)",
            Some((sooner >= 0.25, percent(sooner))),
        ),
        Claim::new(
            "for at most 10 % more flash (published: 12.7 %)",
            Some((larger <= 0.10, percent(larger))),
        ),
        Claim::new(
            "no sample is late by a tick",
            Some((late == 0, format!("at most {late} ticks"))),
        ),
    ];
    let bars: Vec<(String, f64)> =
        stations.iter().map(|it| (it.policy.to_owned(), it.instructions)).collect();
    let picture = Picture::new("Instructions a round", plot::bars("instructions a round", &bars)?);
    let report = Report::new("weather", "A weather station without an operating system").saying(&[
        "Three sensors are read every 3, 6 and 10 ticks of a millisecond, a display is refreshed \
         while it is at least 100 degrees warm, and the rest of the time belongs to calculations. \
         The same firmware is built twice, with two policies compiled in, by gcc -Os for a \
         Cortex-M3, and runs on QEMU's mps2-an385.",
        "Under round robin the display has its turn after each round and finds that it is not hot; \
         the station's own policy knows the temperature, and does not switch to it.",
        "The emulator counts instructions, not cycles, and an exception's entry and exit are none.",
    ]);
    Ok(Report {
        tables: vec![table],
        claims,
        pictures: vec![picture],
        data: json!(stations),
        ..report
    })
}

fn station(name: &'static str, rounds: u32, options: &Options) -> Result<Station> {
    let folder = options.folder.join(name);
    files::create_folder(&folder)?;
    let mut opened = attune_schedulers::open(Path::new(name), &[])?;
    let checked = check(&opened.source, &mut opened.loader, &Default::default());
    let program = checked.program.as_ref().context("the library's scheduler has errors")?;
    let verdicts = &checked.engine(Engine::Embedded).verdicts;
    let attune =
        attune_embedded::source(Policy { program, verdicts, sources: &checked.sources }, false)?;
    let image = Firmware {
        board: Board::Mps2An385,
        attune: &attune,
        project: &[("station.c", STATION), ("attune_config.h", CONFIG)],
        flags: &[&format!("-DROUNDS={rounds}")],
    }
    .build(&folder)?;
    let outcome = image.run(SHIFT)?;
    ensure!(outcome.status == Some(0), "the station under {name} ended early: {}", outcome.said);
    let numbers = |word| numbers(&outcome.said, word);
    let first = |word| {
        numbers(word).first().copied().ok_or_else(|| anyhow!("no `{word}` in {}", outcome.said))
    };
    let Footprint { flash, ram } = image.footprint()?;
    Ok(Station {
        policy: name,
        flash,
        ram,
        instructions: first("counts")? as f64 * COUNT_NS
            / f64::from(1 << SHIFT)
            / f64::from(rounds),
        late: numbers("latest").into_iter().max().unwrap_or(0),
        samples: numbers("samples"),
        refreshes: first("refreshes")?,
    })
}

/// The numbers that stand behind a word.
fn numbers(said: &str, word: &str) -> Vec<u64> {
    let words: Vec<&str> = said.split_whitespace().collect();
    let behind = words.windows(2).filter(|pair| pair[0] == word);
    behind.filter_map(|pair| pair[1].parse().ok()).collect()
}
