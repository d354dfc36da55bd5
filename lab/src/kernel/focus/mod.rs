//! Experiments with a desktop: [`attune-load desktop`](../../../load/src/desktop/mod.rs) starts an
//! X server and real programs on it, types and drags, and adds processes that compute.
//!
//! The published figures are of Etsion, Tsafrir and Feitelson, *Process prioritization using output
//! production: scheduling for multimedia* (2006), and of their work on human-centred scheduling: a
//! modified X server and kernel, one CPU.

pub mod adaptive;
pub mod all;
pub mod classify;
pub mod cost;
pub mod first_key;
pub mod frames;
pub mod latency;
pub mod session;
pub mod sound;
pub mod two;
pub mod window;

use std::path::PathBuf;

use anyhow::{Result, ensure};

use super::coop::real::x_server;
use super::{Contestant, Films, Results};
use crate::experiment::Options;
use crate::report::Claim;

const FAIR: &str = "fair class";
const NICE: &str = "fair class, nice -20 by hand";
const CGROUP: &str = "fair class, focused cgroup x 5";
const WEIGHTS: &str = "fair class, attuned's weights";
const HUMAN: &str = "attune human";
const DESKTOP: &str = "attune desktop";

const PUBLISHED: &str = "Etsion, Tsafrir and Feitelson (2006): with a modified X server and a \
    modified kernel a film keeps every frame beside ten processes that compute, and dispatch \
    latency stays below 1 ms.";

/// Small, so that scaling it is most of the work, which then hardly varies.
const FILM: Films = Films { count: 1, seconds: 60, size: "320x180" };
/// Where programs start slowly beside the film, or are watched for longer.
const LONG_FILM: Films = Films { seconds: 120, ..FILM };

/// mplayer, scaling its film to such a size and showing it there. Sound that nobody hears is its
/// clock, and it leaves out late pictures.
macro_rules! player {
    ($size:literal) => {
        player!($size, "0:0")
    };
    ($size:literal, $place:literal) => {
        player!($size, $place, "")
    };
    ($size:literal, $place:literal, $more:literal) => {
        concat!(
            " --player 'mplayer -really-quiet -noconsolecontrols -vo x11 -ao null -framedrop \
             -geometry ",
            $place,
            " -vf scale=",
            $size,
            $more,
            " {films}/film-1.mkv'"
        )
    };
}
pub(crate) use player;

/// A person who types into vim in a terminal, and drags it after so many keys.
macro_rules! typing {
    () => {
        typing!("=16")
    };
    ($keys:literal) => {
        concat!(" --manager openbox --typed 'xterm -geometry 80x24 -e vim -u NONE' --drag", $keys)
    };
}
pub(crate) use typing;

/// What the monitor may take, in per cent of a CPU.
const MOST_CPU: f64 = 0.5;

/// What the weights of the fair class need.
const MONITOR: &[&str] = &["attune"];
const MONITOR_AND_DAEMON: &[&str] = &["attune", "attuned"];

fn fair_with_weights() -> Contestant {
    Contestant::fair_class().with(WEIGHTS, "--favour weights", MONITOR_AND_DAEMON)
}

/// A policy that reads ratings, and the monitor that gives them.
fn rated(policy: &'static str, name: &str) -> Contestant {
    Contestant::ours(policy).with(name, "--favour ratings", MONITOR)
}

/// Without a peer. `--quick` leaves out those on which no claim rests.
fn kernel_and_ours() -> Vec<Contestant> {
    vec![
        Contestant::fair_class(),
        Contestant::fair_class().with(NICE, "--favour nice", &[]).thorough(),
        Contestant::fair_class().with(CGROUP, "--favour cgroup", &[]).thorough(),
        fair_with_weights(),
        rated("human", HUMAN),
        rated("desktop", DESKTOP),
    ]
}

/// The peers that are made for desktops.
fn peers() -> impl Iterator<Item = Contestant> {
    const PEERS: [&str; 3] = ["scx_lavd", "scx_bpfland", "scx_cosmos"];
    let wanted = Contestant::peers().filter(|peer| PEERS.contains(&peer.name.as_str()));
    wanted.map(Contestant::thorough)
}

fn everybody() -> Vec<Contestant> {
    let mut all = kernel_and_ours();
    all.splice(4..4, peers());
    all
}

fn player_alone(_: &Options) -> Result<Vec<PathBuf>> {
    x_server(&["mplayer"])
}

/// With a window manager and an editor in a terminal.
fn editing(_: &Options) -> Result<Vec<PathBuf>> {
    editing_beside(&[])
}

/// And a film player.
fn with_film(_: &Options) -> Result<Vec<PathBuf>> {
    editing_beside(&["mplayer"])
}

/// And sound and a compiler.
fn whole_desktop(options: &Options) -> Result<Vec<PathBuf>> {
    let programs = [&sound::PROGRAMS[..], &["mplayer"]].concat();
    let compiler = super::compiler(options)?;
    Ok([editing_beside(&programs)?, sound::modules()?, compiler].concat())
}

fn editing_beside(programs: &[&str]) -> Result<Vec<PathBuf>> {
    let files = [
        "/lib/terminfo/x/xterm",
        "/etc/xdg/openbox",
        "/usr/share/themes/Clearlooks",
        "/etc/fonts",
        "/usr/share/fonts/truetype/dejavu",
    ];
    let mut all = x_server(&[&["openbox", "xterm", "vim"], programs].concat())?;
    for file in files.map(PathBuf::from) {
        ensure!(file.exists(), "it needs {} of Debian's openbox, xterm and fonts", file.display());
        all.push(file);
    }
    Ok(all)
}

/// Wake-ups of each of these programs are at most so many ms late; a figure for each.
fn punctual(results: &Results, who: &str, late: &[&str], latest: f64) -> Claim {
    let each: Option<Vec<f64>> = late.iter().map(|late| results.worst(who, late)).collect();
    Claim::new(
        format!("{who}: 99 of 100 wake-ups of each program are at most {latest} ms late"),
        each.map(|each| {
            let list: Vec<String> = each.iter().map(|late| format!("{late:.2}")).collect();
            (each.iter().all(|late| *late <= latest), format!("{} ms", list.join(" / ")))
        }),
    )
}

/// Wake-ups that wait for less are not late, in ms; there is nothing to better.
const NOT_LATE: f64 = 0.05;

/// How many times less late a program is by weights than without.
fn sooner(results: &Results, figure: &str, times: f64) -> Claim {
    let both = results.median(FAIR, figure).zip(results.median(WEIGHTS, figure));
    Claim::new(
        format!(
            "attuned's weights alone: {figure} at least {times} times better than without, or at \
             most {NOT_LATE} ms"
        ),
        both.map(|(fair, ours)| {
            let found = fair / ours.max(1e-6);
            let holds = found >= times || ours <= NOT_LATE;
            (holds, format!("{found:.1} times: {ours:.2} against {fair:.2} ms"))
        }),
    )
}

/// A figure of a contestant is at most so much in every run.
fn at_most(results: &Results, who: &str, what: &str, figure: &str, most: f64, unit: &str) -> Claim {
    let worst = results.worst(who, figure);
    Claim::new(
        format!("{who}: {what} at most {most} {unit}"),
        worst.map(|worst| (worst <= most, format!("{worst:.3} {unit}"))),
    )
}
