//! Experiment `focus-sound`: whether sound without real-time priority comes in time.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use super::{DESKTOP, HUMAN, PUBLISHED, everybody, x_server};
use crate::experiment::Options;
use crate::kernel::{Description, Figure, Part, Place, Results, TWO_SEEDS, Workload};
use crate::report::Claim;

const LATE: [&str; 2] = ["1 ms: late (%)", "5 ms: late (%)"];

macro_rules! playing {
    ($buffer:literal) => {
        concat!(
            "desktop --server 'Xvfb :9 -screen 0 640x480x24 -nolisten tcp -ac' --hogs 0,10 \
             --beside 'attune-load compile --count 100000 --at-once 2' --seconds {seconds} \
             --sound ",
            $buffer
        )
    };
}

const fn workload(name: &'static str, words: &'static str) -> Workload {
    Workload::new(name, words).needing(needs).with_memory(1536).lasting(8, 4)
}

pub const EXPERIMENT: Description = Description {
    name: "focus-sound",
    about: "whether PipeWire without real-time priority fills buffers of 1 and 5 ms in time beside \
        a compile and ten processes that compute",
    title: "Sound beside a compile",
    text: &[
        "PipeWire plays silence into a sink that nobody hears and whose clock asks for a buffer \
            every 1 or 5 ms. Neither the server nor the player (pw-cat) has real-time priority, as \
            both would by rtkit. Then a compile of two files at a time and ten processes that \
            compute go on beside. Late: buffers that are not full when the next one's time has \
            come, by the kernel's trace; each is an xrun. Nothing can be seen and nobody types: \
            the monitor rates the two by what plays, which pipewire-pulse tells it.",
    ],
    published: PUBLISHED,
    parts: &[Part {
        title: "Sound beside a compile and ten processes that compute",
        place: Place::ONE_CPU,
        contestants: everybody,
        workloads: &[workload("1 ms", playing!("1")), workload("5 ms", playing!("5"))],
        figures: &[
            Figure::new("1 ms, alone: late (%)", "1 ms", "/phases/0/sound/late_percent", 1.0),
            Figure::new(LATE[0], "1 ms", "/phases/1/sound/late_percent", 1.0),
            Figure::new("1 ms: full, p99 (ms)", "1 ms", "/phases/1/sound/to_full_ns/p99", 1e6),
            Figure::new(LATE[1], "5 ms", "/phases/1/sound/late_percent", 1.0),
            Figure::new("5 ms: full, p99 (ms)", "5 ms", "/phases/1/sound/to_full_ns/p99", 1e6),
            Figure::new("5 ms: full, max (ms)", "5 ms", "/phases/1/sound/to_full_ns/max", 1e6),
            Figure::new("compile (% CPU)", "5 ms", "/phases/1/compile_percent", 1.0),
            Figure::new("hogs (% CPU)", "5 ms", "/phases/1/hogs_percent", 1.0),
        ],
    }],
    seeds: TWO_SEEDS,
    drawn: LATE[1],
    claims,
};

/// PipeWire's programs that take part.
pub const PROGRAMS: [&str; 4] = ["pipewire", "pipewire-pulse", "pw-cat", "pw-link"];

fn needs(options: &Options) -> Result<Vec<PathBuf>> {
    Ok([x_server(&PROGRAMS)?, modules()?, crate::kernel::compiler(options)?].concat())
}

/// What [`PROGRAMS`] load.
pub fn modules() -> Result<Vec<PathBuf>> {
    const MODULES: [&str; 8] = [
        "protocol-native",
        "metadata",
        "client-node",
        "access",
        "adapter",
        "link-factory",
        "session-manager",
        "protocol-pulse",
    ];
    let folder = PathBuf::from("/usr/lib/x86_64-linux-gnu");
    let modules =
        MODULES.map(|name| folder.join(format!("pipewire-0.3/libpipewire-module-{name}.so")));
    let plugins = ["support", "audioconvert"].map(|name| folder.join("spa-0.2").join(name));
    let all: Vec<PathBuf> = modules.into_iter().chain(plugins).collect();
    for file in &all {
        ensure!(
            file.exists(),
            "PipeWire lacks {}; tools/setup.sh players installs it",
            file.display()
        );
    }
    Ok(all)
}

fn claims(results: &Results) -> Vec<Claim> {
    let none = |who, late: &'static str, buffer| {
        Claim::new(
            format!("{who}: no buffer of {buffer} is late"),
            results.worst(who, late).map(|late| (late == 0.0, format!("{late:.2} % late"))),
        )
    };
    [HUMAN, DESKTOP]
        .into_iter()
        .flat_map(|who| [none(who, LATE[0], "1 ms"), none(who, LATE[1], "5 ms")])
        .collect()
}
