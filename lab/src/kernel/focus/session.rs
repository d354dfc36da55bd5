//! Experiment `focus-session`: whether the monitor rates the right processes.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use super::{FILM, editing_beside, sound};
use crate::experiment::Options;
use crate::kernel::{Description, Figure, Part, Place, Results, Workload, compiler};
use crate::report::Claim;

const TURNED: &str = "rated within a second (%)";
const KEPT: &str = "rated while relevant (%)";
const OTHERS: &str = "others not rated (%)";
/// What is claimed, in per cent.
const LEAST: f64 = 98.0;

pub const EXPERIMENT: Description = Description {
    name: "focus-session",
    about: "whether the monitor rates the processes that a person deals with, and no others, in a \
        session with fourteen programs",
    title: "The right processes",
    text: &[
        "A person turns to one of eleven windows, types into it or watches it for 5 to 15 s, and \
            turns to the next, at random: LibreOffice's writer; a browser (Firefox) with a page on \
            which a square moves; vim, nano, less and a shell, each in an xterm; Emacs; a game \
            (chocolate-doom); top in an xterm; a film in mplayer, another in mpv. Each window \
            covers the screen while the person deals with it, and those behind it go on: films \
            play, the game and the browser draw. Sound is on and off in turn (pw-cat). A compile \
            and a process that computes take the rest of the CPU.",
        "Relevant are the program that the person types into or watches, with all processes that \
            it started and that run in that second (a browser keeps some that wait), and the \
            player of sound that plays. Each second the monitor says which processes are rated. \
            Rated within a second: of all processes that became relevant a second ago. Others: of \
            all pairs of another program and a second; a program that the person has left in the \
            last 15 s is not counted, since ratings fade. The X server, the window manager and the \
            sound servers serve all, and are not counted.",
    ],
    published: "nobody states such figures.",
    parts: &[Part {
        title: "A session with fourteen programs",
        place: Place::ONE_CPU,
        contestants: || vec![super::rated("desktop", super::DESKTOP)],
        workloads: &[Workload::new(
            "session",
            "session --film {films}/film-1.mkv --seed {seed} --seconds {seconds}",
        )
        .playing(FILM, needs)
        .with_memory(6144)
        .lasting(600, 60)],
        figures: &[
            Figure::new(TURNED, "session", "/rated_within_a_second/percent", 1.0),
            Figure::new(KEPT, "session", "/rated_while_relevant/percent", 1.0),
            Figure::new(OTHERS, "session", "/others_unrated/percent", 1.0),
        ],
    }],
    seeds: &[1],
    drawn: TURNED,
    claims,
};

fn needs(options: &Options) -> Result<Vec<PathBuf>> {
    let shown = ["nano", "less", "emacs", "top", "mplayer", "mpv"];
    let mut all = editing_beside(&[&sound::PROGRAMS[..], &shown].concat())?;
    // The browser loads its parts from there, as the office does. Emacs begins with what it had in
    // its memory when it was made; the game has its levels there.
    let files = [
        "/usr/lib/firefox-esr",
        "/usr/lib/libreoffice",
        "/usr/share/libreoffice",
        "/etc/libreoffice",
        "/usr/libexec/emacs",
        "/usr/lib/emacs",
        "/usr/share/emacs/28.2/etc/charsets",
        "/usr/games/chocolate-doom",
        "/usr/share/games/doom/freedoom1.wad",
    ];
    for file in files.map(PathBuf::from) {
        ensure!(file.exists(), "it needs {}; tools/setup.sh players installs it", file.display());
        all.push(file);
    }
    Ok([all, sound::modules()?, compiler(options)?].concat())
}

fn claims(results: &Results) -> Vec<Claim> {
    let least = |what: &str, figure| {
        let found = results.median(super::DESKTOP, figure);
        Claim::new(
            format!("{what} at least {LEAST} %"),
            found.map(|percent| (percent >= LEAST, format!("{percent:.2} %"))),
        )
    };
    vec![
        least("of the processes that become relevant are rated within a second", TURNED),
        least("of the pairs of another program and a second are without a rating", OTHERS),
    ]
}
