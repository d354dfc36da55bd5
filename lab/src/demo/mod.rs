//! Experiment `demo`: three minutes of what Attune does, in figures that noise cannot change.
//!
//! First the deterministic virtual machine: players that nobody changed, under the kernel's fair
//! class and under `coop --implicit`. Then one page of text in two engines ([`engines`]), compared
//! by the order of their decisions and never by times. Nothing comes from the run cache.

mod engines;

use anyhow::Result;
use serde_json::json;

use crate::experiment::{Experiment, Options, Procedure, Progress};
use crate::kernel::{Contestant, Description, Figure, Part, Place, Results, Workload};
use crate::plot;
use crate::report::{Claim, Picture, Report, Table};

pub const EXPERIMENT: Procedure = Procedure {
    name: "demo",
    about: "three minutes: unmodified players beside hogs in a deterministic machine, and one \
        policy in two engines",
    check: |options| PLAYERS.check(options),
    run,
};

const FAIR: &str = "fair class";
const SHORT_SLICES: &str = "fair class, 0.1 ms";
const OURS: &str = "attune coop --implicit";
const P99: &str = "p99 (ms)";
const WORST: &str = "worst (ms)";
const HOGS: &str = "hogs' CPU (%)";
const FIGURES: &[Figure] = &[
    Figure::new("p50 (ms)", "players", "/late_ns/p50", 1e6),
    Figure::new(P99, "players", "/late_ns/p99", 1e6),
    Figure::new(WORST, "players", "/late_ns/max", 1e6),
    Figure::new(HOGS, "players", "/hogs_percent", 1.0),
    Figure::new("useful CPU (%)", "players", "/useful_percent", 1.0),
];
/// The bounds of the claims: how many times sooner than the fair class, than the fair class with
/// short slices; how far the hogs are off their fair share, in per cent of it.
const SOONER: f64 = 10.0;
const SOONER_THAN_SHORT: f64 = 1.5;
const FAIR_SHARE: f64 = 100.0 / 3.0;
const OFF: f64 = 3.0;

/// Its report is this experiment's.
const PLAYERS: Description = Description {
    name: "demo",
    about: "",
    title: "",
    text: &[],
    published: "",
    parts: &[Part {
        title: "",
        place: Place::ONE_CPU,
        contestants: || {
            let words = "--implicit --set per_process=1 --set period=8ms";
            vec![
                Contestant::fair_class(),
                Contestant::fair_class_short_slices(),
                Contestant::ours_changed("coop --implicit", "coop", words),
            ]
        },
        workloads: &[Workload::new(
            "players",
            "players --count 8 --hogs 4 --timers thread --seconds {seconds}",
        )
        .lasting(3, 1)],
        figures: FIGURES,
    }],
    seeds: &[1],
    drawn: P99,
    claims: |_| vec![],
};

fn run(options: &Options, progress: Progress) -> Result<Report> {
    let orders = engines::compare(options, progress)?;
    let fresh = Options { fresh: true, ..options.clone() };
    let results = PLAYERS.measure(&fresh, progress)?;
    let claims = claims(&results).into_iter().chain(orders.iter().map(engines::Orders::claim));
    let bars: Vec<_> = [FAIR, SHORT_SLICES, OURS]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), results.median(name, P99)?)))
        .collect();
    let path = format!("export PATH={}:$PATH", options.programs.display());
    let next = [path].into_iter().chain(NEXT.iter().map(|line| (*line).to_owned())).collect();
    let sequences: Vec<_> = orders.iter().flat_map(engines::Orders::rows).collect();
    Ok(Report {
        tables: vec![table(&results)],
        claims: claims.collect(),
        pictures: vec![
            Picture::new("How late 99 of 100 timers are at most (ms)", plot::bars("ms", &bars)?),
            Picture::new(
                "Four replies of 5, 1, 3 and 2 chunks: the sender of each chunk",
                plot::sequences(&sequences),
            ),
        ],
        commands: [vec!["attune lab run demo".to_owned()], results.commands.clone()].concat(),
        next,
        data: json!({ "players": results, "orders": orders }),
        ..Report::new("demo", "Attune in three minutes").saying(TEXT)
    })
}

const TEXT: &[&str] = &[
    "Eight players and four hogs share one CPU. A load generator, attune-load, plays the players: \
     each is a process whose timers (sound every 10 ms, a picture every 1/24 s) live in a thread \
     that sleeps until the next one, while another thread decodes without end. They call nothing \
     of Attune's. The hogs compute all the time. Tardiness is from a timer's time to the first \
     instruction of its handler. docs/coop.md has the figures of mplayer and VLC.",
    "The fair class is the kernel's own, as it is and asked for its shortest slices, 0.1 ms. Under \
     coop --implicit the scheduler is the policy coop.sched: the kernel engine reads from the \
     system calls until when a thread sleeps, and runs it at that time.",
    "The machine is virtual and deterministic: an instruction takes a nanosecond, and nothing else \
     runs in it. So the same set-up prints the same figures to the last digit, however busy the \
     real machine is. Useful CPU is the time spent on decoding and computing; the rest goes into \
     switches, the scheduler, interrupts and event loops.",
    "Then one policy runs in two engines. Four threads have 5, 1, 3 and 2 chunks of a reply to \
     send and yield before each. The simulator interprets the policy's text; a program uses it, \
     compiled, for its user-level threads. Both must choose the same threads in the same order.",
];

const NEXT: &[&str] = &[
    "attune schedulers coop                     the policy of the table's last row",
    "attune sim fair --workload players         a policy in the simulator, in a second",
    "attune check fair                          what is proved of a policy",
    "attune lab run webserver --quick           a web server at overload, in real time",
    "attune lab list                            every claim that you can check",
];

fn table(results: &Results) -> Table {
    let rows = results.rows(P99).iter().map(|row| {
        let cell = |figure: &Figure| match results.median(&row.name, figure.name) {
            Some(value) => format!("{value:.3}"),
            None => "-".to_owned(),
        };
        [row.name.clone()].into_iter().chain(FIGURES.iter().map(cell)).collect()
    });
    let columns: Vec<&str> =
        ["scheduler"].into_iter().chain(FIGURES.iter().map(|figure| figure.name)).collect();
    let mut table = Table::new(
        "Tardiness of eight unmodified players (a load generator's) beside four hogs on one CPU",
        &columns,
        rows.collect(),
    );
    table.notes = vec![format!(
        "Kernel {}, QEMU {}, deterministic: the same figures each time.",
        results.kernel, results.qemu
    )];
    table.notes.extend(results.failures());
    table
}

fn claims(results: &Results) -> Vec<Claim> {
    let times = |other, bound: f64, name: &str| {
        let ratio = results.worst_ratio((other, P99), (OURS, P99));
        Claim::new(
            format!("99 of 100 timers run at least {bound} times sooner than under {name}"),
            ratio.map(|ratio| (ratio >= bound, format!("{ratio:.1} times"))),
        )
    };
    let off = results.median(OURS, HOGS).map(|share| (share / FAIR_SHARE - 1.0).abs() * 100.0);
    vec![
        times(FAIR, SOONER, "the fair class"),
        times(SHORT_SLICES, SOONER_THAN_SHORT, "its shortest slices"),
        Claim::new(
            format!("and the hogs keep their fair share, a third, within {OFF} % of it"),
            off.map(|off| (off <= OFF, format!("{off:.2} % off"))),
        ),
    ]
}
