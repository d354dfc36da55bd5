//! Experiment `focus-classify`: whether the use of the CPU tells what a person deals with.

use anyhow::Result;
use serde_json::{Value, json};

use super::{FILM, MONITOR, player, typing, with_film};
use crate::experiment::{Experiment, Options, Progress};
use crate::kernel::{Contestant, Description, Part, Place, TWO_SEEDS, Workload};
use crate::report::{Claim, Report, Table};

/// What a person deals with, and what works behind.
const FOCUSED: [&str; 4] = ["vim", "xterm", "mplayer", "Xvfb"];
const BEHIND: [&str; 3] = ["cc1", "as", "hog"];

/// A measure of a program: its column, where it stands, and by what it is divided.
struct Measure(&'static str, &'static str, f64);

const USE: [Measure; 4] = [
    Measure("effective quantum p50 (ms)", "/stay_ns/p50", 1e6),
    Measure("effective quantum p90 (ms)", "/stay_ns/p90", 1e6),
    Measure("voluntary switches (%)", "/voluntary_percent", 1.0),
    Measure("CPU (%)", "/cpu_percent", 1.0),
];

const TYPED: &str = "desktop";

const MEASURED: Description = Description {
    name: "focus-classify",
    about: "whether quanta, switches or CPU use tell a person's programs from a compile: they \
        overlap, ratings do not",
    title: "What tells a person's programs from the others",
    text: &["Under the fair class a person types into vim in xterm and looks at a film, beside a \
            compile of two at a time and two processes that compute. Effective quantum: how long a \
            thread runs until another does. Voluntary: it gave the CPU away. A measure overlaps if \
            no bound on it has all programs of the person on one side and all others on the other. \
            Ratings: the greater of the input and output rating, the least and the greatest of \
            all seconds."],
    published: "Etsion, Tsafrir and Feitelson (2006): CPU use, effective quanta and voluntary \
        switches of editors, players, compilers and hogs overlap.",
    parts: &[Part {
        title: "",
        place: Place::ONE_CPU,
        contestants: || {
            vec![Contestant::fair_class().with("fair class", "--favour ratings", MONITOR)]
        },
        workloads: &[Workload::new(
            TYPED,
            concat!(
                "desktop --server 'Xvfb :9 -screen 0 1280x800x24 -nolisten tcp -ac' --hogs 0,2 \
                 --beside 'attune-load compile --count 100000 --at-once 2' --seconds {seconds}",
                player!("688:386", "560:20"),
                typing!()
            ),
        )
        .playing(FILM, |options| {
            Ok([with_film(options)?, crate::kernel::compiler(options)?].concat())
        })
        .lasting(12, 4)],
        figures: &[],
    }],
    seeds: TWO_SEEDS,
    drawn: "",
    claims: |_| vec![],
};

pub struct Classify;

pub const EXPERIMENT: Classify = Classify;

impl Experiment for Classify {
    fn name(&self) -> &'static str {
        MEASURED.name
    }

    fn about(&self) -> &'static str {
        MEASURED.about
    }

    fn check(&self, options: &Options) -> Result<()> {
        MEASURED.check(options)
    }

    fn run(&self, options: &Options, progress: Progress) -> Result<Report> {
        let results = MEASURED.measure(options, progress)?;
        let row = &results.parts[0].rows[0];
        let runs = row.runs.get(TYPED).map(|runs| runs.as_ref().map_err(Clone::clone));
        let runs = runs.unwrap_or_else(|| Err("it was not run".to_owned()));
        let runs = runs.map_err(anyhow::Error::msg)?;
        let first = runs.values().next().map(|run| &run.figures["phases"][1]["programs"]);
        let programs = first.cloned().unwrap_or_default();
        Ok(Report {
            tables: vec![table(&programs)],
            claims: claims(&programs),
            commands: results.commands.clone(),
            data: json!(results),
            ..Report::new(MEASURED.name, MEASURED.title)
                .saying(&[MEASURED.text, &[MEASURED.published]].concat())
        })
    }
}

fn number(program: &Value, Measure(_, pointer, unit): &Measure) -> Option<f64> {
    Some(program.pointer(pointer)?.as_f64()? / unit)
}

/// The least and the greatest rating. One that the monitor never named has none.
fn ratings(program: &Value) -> [f64; 2] {
    let of = |which: &str, bound: &str| program["ratings"][which][bound].as_f64().unwrap_or(0.0);
    ["min", "max"].map(|bound| of("input", bound).max(of("output", bound)))
}

fn table(programs: &Value) -> Table {
    let mut columns = vec!["program"];
    columns.extend(USE.iter().map(|measure| measure.0));
    columns.extend(["least rating", "greatest rating"]);
    let row = |name: &&str| {
        let program = &programs[*name];
        let measures = USE.iter().map(|measure| match number(program, measure) {
            Some(number) => crate::kernel::number(number),
            None => "-".to_owned(),
        });
        let ratings = ratings(program).map(|rating| format!("{rating:.1}"));
        [(*name).to_owned()].into_iter().chain(measures).chain(ratings).collect()
    };
    let rows = FOCUSED.iter().chain(&BEHIND).map(row).collect();
    Table::new(MEASURED.title, &columns, rows)
}

fn claims(programs: &Value) -> Vec<Claim> {
    let overlaps = |measure: &Measure| {
        let of = |names: &[&str]| -> Option<[f64; 2]> {
            let all: Option<Vec<f64>> =
                names.iter().map(|name| number(&programs[*name], measure)).collect();
            let all = all?;
            let least = all.iter().copied().fold(f64::INFINITY, f64::min);
            Some([least, all.into_iter().fold(f64::NEG_INFINITY, f64::max)])
        };
        let both = of(&FOCUSED).zip(of(&BEHIND));
        Claim::new(
            format!("{} overlaps", measure.0),
            both.map(|(a, b)| {
                let said = format!("{:.2} to {:.2}, and {:.2} to {:.2}", a[0], a[1], b[0], b[1]);
                (a[0] <= b[1] && b[0] <= a[1], said)
            }),
        )
    };
    let least =
        FOCUSED.map(|name| ratings(&programs[name])[0]).into_iter().fold(f64::INFINITY, f64::min);
    let most = BEHIND.map(|name| ratings(&programs[name])[1]).into_iter().fold(0.0, f64::max);
    let mut claims: Vec<Claim> = USE.iter().map(overlaps).collect();
    claims.push(Claim::new(
        "ratings do not overlap",
        Some((least > most, format!("{least:.1} or more, and at most {most:.1}"))),
    ));
    claims
}
