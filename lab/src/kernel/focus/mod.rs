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
pub mod frames;
pub mod latency;
pub mod two;

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

/// mplayer, scaling its film to such a size and showing it there. Sound that nobody hears is its
/// clock, and it leaves out late pictures.
macro_rules! player {
    ($size:literal) => {
        player!($size, "0:0")
    };
    ($size:literal, $place:literal) => {
        concat!(
            " --player 'mplayer -really-quiet -noconsolecontrols -vo x11 -ao null -framedrop \
             -geometry ",
            $place,
            " -vf scale=",
            $size,
            " {films}/film-1.mkv'"
        )
    };
}
pub(crate) use player;

/// A person who types into vim in a terminal, and drags it.
macro_rules! typing {
    () => {
        " --manager openbox --typed 'xterm -geometry 80x24 -e vim -u NONE' --drag"
    };
}
pub(crate) use typing;

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

/// Without a peer.
fn kernel_and_ours() -> Vec<Contestant> {
    vec![
        Contestant::fair_class(),
        Contestant::fair_class().with(NICE, "--favour nice", &[]),
        Contestant::fair_class().with(CGROUP, "--favour cgroup", &[]),
        fair_with_weights(),
        rated("human", HUMAN),
        rated("desktop", DESKTOP),
    ]
}

/// The peers that are made for desktops.
fn peers() -> impl Iterator<Item = Contestant> {
    const PEERS: [&str; 3] = ["scx_lavd", "scx_bpfland", "scx_cosmos"];
    Contestant::peers().filter(|peer| PEERS.contains(&peer.name.as_str()))
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
fn whole_desktop(_: &Options) -> Result<Vec<PathBuf>> {
    let files = [
        "/lib/terminfo/x/xterm",
        "/etc/xdg/openbox",
        "/usr/share/themes/Clearlooks",
        "/etc/fonts",
        "/usr/share/fonts/truetype/dejavu",
    ];
    let mut all = x_server(&["mplayer", "openbox", "xterm", "vim"])?;
    for file in files.map(PathBuf::from) {
        ensure!(file.exists(), "it needs {} of Debian's openbox, xterm and fonts", file.display());
        all.push(file);
    }
    Ok(all)
}

/// A figure of a contestant is at most so much in every run.
fn at_most(results: &Results, who: &str, what: &str, figure: &str, most: f64, unit: &str) -> Claim {
    let worst = results.worst(who, figure);
    Claim::new(
        format!("{who}: {what} at most {most} {unit}"),
        worst.map(|worst| (worst <= most, format!("{worst:.3} {unit}"))),
    )
}
