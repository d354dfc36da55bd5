//! Experiment `embedded-web`: the web server's firmware under its own policy and under round robin.

use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, ensure};
use attune_backend_c::Policy;
use attune_embedded::firmware::{Board, Firmware, Image, available};
use attune_language::check;
use attune_language::engine::Engine;
use attune_language::resolve::SourceText;
use serde::Serialize;
use serde_json::json;

use super::lwip;
use crate::experiment::{Options, Procedure, Progress};
use crate::plot::Line;
use crate::report::{Claim, Picture, Report, Table};
use crate::{files, plot};

pub const EXPERIMENT: Procedure = Procedure {
    name: "embedded-web",
    about: "a web server's firmware on a microcontroller: requests under a policy of its own and \
            under round robin",
    check: |_| can_run(),
    run,
};

/// Whether the compiler, the emulator and lwIP are there.
pub fn can_run() -> Result<()> {
    available(Board::Mps2An385)?;
    lwip::available()
}

macro_rules! example {
    ($name:literal) => {
        include_str!(concat!("../../../examples/embedded_web/", $name))
    };
}

const PROJECT: [(&str, &str); 15] = [
    ("arch/cc.h", example!("arch/cc.h")),
    ("attune_config.h", example!("attune_config.h")),
    ("card.c", example!("card.c")),
    ("card.h", example!("card.h")),
    ("clients.c", example!("clients.c")),
    ("clients.h", example!("clients.h")),
    ("connection.c", example!("connection.c")),
    ("connection.h", example!("connection.h")),
    ("lan9118.c", example!("lan9118.c")),
    ("lwipopts.h", example!("lwipopts.h")),
    ("page.h", example!("page.h")),
    ("server.c", example!("server.c")),
    ("settings.h", example!("settings.h")),
    ("wire.c", example!("wire.c")),
    ("wire.h", example!("wire.h")),
];

/// The emulator spends 32 ns on an instruction, near a real part of 25 MHz; the board's counter
/// counts 40 ns.
const SHIFT: u32 = 5;
const COUNT_NS: f64 = 40.0;

const HANDLERS: [u32; 2] = [4, 8];
const CLIENTS: u32 = 12;
/// What the wire takes in one direction, in microseconds.
const LATENCIES: [u32; 3] = [0, 500, 2000];

/// The policy of the example, and the library's round robin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    Own,
    RoundRobin,
}

/// How the firmware is built.
struct Contestant {
    name: &'static str,
    scheduler: Scheduler,
    flags: &'static [&'static str],
}

const OURS: usize = 0;
const CONTESTANTS: [Contestant; 5] = [
    Contestant { name: "embedded_web", scheduler: Scheduler::Own, flags: &[] },
    Contestant { name: "round_robin", scheduler: Scheduler::RoundRobin, flags: &[] },
    Contestant {
        name: "round_robin, polling",
        scheduler: Scheduler::RoundRobin,
        flags: &["-DPOLLING=1"],
    },
    Contestant {
        name: "round_robin, card emptied",
        scheduler: Scheduler::RoundRobin,
        flags: CARD_EMPTIED,
    },
    Contestant {
        name: "embedded_web, card emptied",
        scheduler: Scheduler::Own,
        flags: CARD_EMPTIED,
    },
];
const CARD_EMPTIED: &[&str] = &["-DFRAMES_A_TURN=32"];

/// So many clients at one firmware.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    contestant: &'static str,
    handlers: u32,
    latency_us: u32,
    pub clients: u32,
    pub answered: u32,
    pub failed: u32,
    /// A second of the emulated processor, the clients' computing left out.
    pub requests_per_second: f64,
    instructions_per_request: f64,
    /// From a client's first frame to its last.
    response_us: f64,
}

/// The firmware, built in a folder with these flags of `settings.h`.
pub fn build(board: Board, scheduler: Scheduler, flags: &[&str], folder: &Path) -> Result<Image> {
    let own;
    let mut opened;
    let mut nothing: &[(&str, &str)] = &[];
    let checked = match scheduler {
        Scheduler::Own => {
            let text = example!("embedded_web.sched");
            own = SourceText { name: "embedded_web.sched".into(), text: text.into() };
            check(&own, &mut nothing, &Default::default())
        }
        Scheduler::RoundRobin => {
            opened = attune_schedulers::open(Path::new("round_robin"), &[])?;
            check(&opened.source, &mut opened.loader, &Default::default())
        }
    };
    let program = checked.program.as_ref().context("the scheduler has errors")?;
    let verdicts = &checked.engine(Engine::Embedded).verdicts;
    let attune =
        attune_embedded::source(Policy { program, verdicts, sources: &checked.sources }, false)?;
    files::create_folder(folder)?;
    let lwip = lwip::flags();
    let library = match board {
        Board::Host => None,
        Board::Mps2An385 => Some("-lc"),
    };
    // lwIP's warnings are not ours.
    let flags: Vec<&str> = flags
        .iter()
        .copied()
        .chain(["-Wno-error"])
        .chain(lwip.iter().map(String::as_str))
        .chain(library)
        .collect();
    Ok(Firmware { board, attune: &attune, project: &PROJECT, flags: &flags }.build(folder)?)
}

/// The firmware's own clients, to their end.
pub fn parts(contestant: &'static str, handlers: u32, image: &Image) -> Result<Vec<Part>> {
    let outcome = image.run(SHIFT)?;
    ensure!(outcome.status == Some(0), "{contestant} ended early: {}", outcome.said);
    let lines = outcome.said.lines().filter(|line| line.starts_with("latency "));
    let part = |line: &str| {
        let answered: u32 = number(line, "answered")?;
        let seconds = number::<f64>(line, "counts")? * COUNT_NS / 1e9;
        Ok(Part {
            contestant,
            handlers,
            latency_us: number(line, "latency")?,
            clients: number(line, "clients")?,
            answered,
            failed: number::<u32>(line, "wrong")? + number::<u32>(line, "broken")?,
            requests_per_second: f64::from(answered) / seconds,
            instructions_per_request: seconds * 1e9 / f64::from(1 << SHIFT) / f64::from(answered),
            response_us: number::<f64>(line, "responses")? * COUNT_NS / 1e3 / f64::from(answered),
        })
    };
    lines.map(part).collect()
}

/// What stands behind a word.
fn number<T: FromStr>(line: &str, word: &str) -> Result<T> {
    let found = line.split(' ').skip_while(|it| *it != word).nth(1);
    found.and_then(|number| number.parse().ok()).with_context(|| format!("no `{word}` in {line}"))
}

fn run(options: &Options, progress: Progress) -> Result<Report> {
    let requests = if options.quick { 100 } else { 500 };
    let latencies = LATENCIES.map(|latency| latency.to_string()).join(",");
    let mut measured = Vec::new();
    for (number, contestant) in CONTESTANTS.iter().enumerate() {
        for handlers in HANDLERS {
            progress(&format!("{}, {handlers} handlers", contestant.name));
            let flags = [
                format!("-DHANDLERS={handlers}"),
                format!("-DCLIENTS={CLIENTS}"),
                format!("-DREQUESTS={requests}"),
                format!("-DLATENCIES={latencies}"),
            ];
            let flags: Vec<&str> =
                flags.iter().map(String::as_str).chain(contestant.flags.iter().copied()).collect();
            let folder = options.folder.join(format!("{number}-{handlers}"));
            let image = build(Board::Mps2An385, contestant.scheduler, &flags, &folder)?;
            measured.extend(parts(contestant.name, handlers, &image)?);
        }
    }

    let mut tables = Vec::new();
    let mut pictures = Vec::new();
    let mut claims = vec![all_answered(&measured)];
    for latency in LATENCIES {
        for handlers in HANDLERS {
            let of = |contestant: usize| {
                let name = CONTESTANTS[contestant].name;
                let fits = move |part: &&Part| {
                    (part.contestant, part.handlers, part.latency_us) == (name, handlers, latency)
                };
                measured.iter().filter(fits).collect::<Vec<&Part>>()
            };
            let all: Vec<Vec<&Part>> = (0..CONTESTANTS.len()).map(of).collect();
            let about = match latency {
                0 => format!("{handlers} handlers"),
                _ => format!("{handlers} handlers, {latency} us of wire"),
            };
            tables.push(table(&about, &all));
            let line = |(contestant, parts): (&Contestant, &Vec<&Part>)| Line {
                name: contestant.name.to_owned(),
                points: parts
                    .iter()
                    .map(|part| (f64::from(part.clients), part.requests_per_second))
                    .collect(),
                dashed: contestant.scheduler == Scheduler::RoundRobin,
            };
            let lines: Vec<Line> = CONTESTANTS.iter().zip(&all).map(line).collect();
            let svg = plot::lines("clients", "requests a second", &lines)?;
            pictures.push(Picture::new(format!("Requests a second: {about}"), svg));
            claims.extend((1..3).map(|other| {
                let name = CONTESTANTS[other].name;
                ahead(&format!("{about}: ahead of {name} with 1 to 12 clients"), &all, other)
            }));
        }
    }
    let report = Report::new("embedded-web", "A web server without an operating system").saying(&[
        "A driver thread asks the network card for frames, and 4 or 8 handler threads serve a \
         connection each, over lwIP. The same firmware is built with two policies, by gcc -Os for \
         a Cortex-M3, and runs on QEMU's mps2-an385. 1 to 12 clients in the same firmware, at the \
         other end of a wire that is a piece of memory, ask for a page again and again, each time \
         on a new connection. The clock stands still while they compute, so all figures are the \
         server's, and repeat to the digit.",
        "In `polling`, a thread that waits stays ready and asks again in each of its turns; in the \
         others it is blocked. In `card emptied`, the driver takes all frames in one turn; in the \
         others one.",
        "Published (on another board): with 8 handlers and 8 to 12 clients the policy was 12 to \
         20 % behind round robin.",
        "The emulator counts instructions, not cycles, and an exception's entry and exit are none.",
    ]);
    Ok(Report { tables, claims, pictures, data: json!(measured), ..report })
}

/// A row for each number of clients, a column for each contestant.
fn table(about: &str, all: &[Vec<&Part>]) -> Table {
    let names = CONTESTANTS.iter().map(|contestant| contestant.name);
    let columns: Vec<&str> =
        std::iter::once("clients").chain(names).chain(["instructions", "response, us"]).collect();
    let row = |(number, ours): (usize, &&Part)| {
        let rates = all.iter().map(|parts| format!("{:.0}", parts[number].requests_per_second));
        std::iter::once(ours.clients.to_string())
            .chain(rates)
            .chain([
                format!("{:.0}", ours.instructions_per_request),
                format!("{:.0}", ours.response_us),
            ])
            .collect()
    };
    let rows = all[OURS].iter().enumerate().map(row).collect();
    let mut table = Table::new(format!("Requests a second: {about}"), &columns, rows);
    table.notes.push("the last two columns: embedded_web, for each request".to_owned());
    table
}

/// How far ours is ahead where it is ahead by the least.
fn ahead(claim: &str, all: &[Vec<&Part>], other: usize) -> Claim {
    let gain = |(ours, theirs): (&&Part, &&Part)| {
        (ours.requests_per_second / theirs.requests_per_second - 1.0, ours.clients)
    };
    let gains = all[OURS].iter().zip(&all[other]).map(gain);
    let gains: Vec<(f64, u32)> = gains.collect();
    let by = |it: &&(f64, u32), other: &&(f64, u32)| it.0.total_cmp(&other.0);
    let extremes = gains.iter().min_by(by).zip(gains.iter().max_by(by));
    Claim::new(
        claim,
        extremes.map(|(least, most)| {
            let said =
                |(gain, clients): (f64, u32)| format!("{:+.1} % with {clients}", gain * 100.0);
            (least.0 > 0.0, format!("{} to {}", said(*least), said(*most)))
        }),
    )
}

fn all_answered(measured: &[Part]) -> Claim {
    let answered: u32 = measured.iter().map(|part| part.answered).sum();
    let failed: u32 = measured.iter().map(|part| part.failed).sum();
    Claim::new(
        "every reply is right, byte by byte",
        Some((failed == 0 && answered > 0, format!("{failed} of {} failed", answered + failed))),
    )
}
