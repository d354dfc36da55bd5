//! Experiment `webserver`: what a scheduler that knows the sizes of replies is worth to a real web server.
//!
//! The example server (examples/webserver) runs on one core under `fifo` and under `shortest_reply`, nginx with one worker
//! beside; clients run on another core. The same policy files then run in the simulator.
//!
//! **Claims.** At overload the mean response time under `shortest_reply` is at least 30 % below fifo's, fifo having been
//! given the settings that suit it best; no request is lost or answered wrongly; throughput is at most 2 % below; the price
//! that the large replies pay is in the table, and bounded.

pub mod measure;
pub mod network;
pub mod plan;
mod runs;
pub mod server;
pub mod simulate;
pub mod site;
mod story;

use std::fs;

use anyhow::{Context, Result, bail};

use crate::cpu;
use crate::experiment::{Experiment, Options, Procedure, Progress};
use crate::report::Report;

pub const EXPERIMENT: Experiment = Experiment {
    name: "webserver",
    about: "a web server at overload: shortest reply first against first come, first served",
    method: &Procedure { check: |_| two_cores().map(drop), run },
};

/// One for the server, one for its clients.
fn two_cores() -> Result<[usize; 2]> {
    let cores = cpu::allowed().context("which cores there are")?;
    let [server_core, client_core, ..] = cores[..] else {
        bail!(
            "this experiment needs two cores, one for the server and one for its clients; there is {}",
            cores.len()
        );
    };
    Ok([server_core, client_core])
}

fn run(options: &Options, progress: Progress) -> Result<Report> {
    let [server_core, client_core] = two_cores()?;
    let folder = options.folder.join("webserver");
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;

    // Entering a network of one's own and pinning are for good, so a thread that ends does both. Its messages are printed
    // here, because what prints them belongs to the caller.
    let (say, said) = std::sync::mpsc::channel::<String>();
    std::thread::scope(|scope| {
        let measuring = scope.spawn(|| {
            let say = say;
            let network = network::enter(server_core);
            cpu::pin_to(client_core).context("pinning to a core")?;
            let bench = runs::Bench {
                options,
                folder: &folder,
                server_core,
                say: &|text| drop(say.send(text.to_owned())),
            };
            bench.run().map(|results| (results, network.err()))
        });
        said.iter().for_each(|text| progress(&text));
        let (results, network) =
            measuring.join().map_err(|_| anyhow::anyhow!("the measuring thread panicked"))??;
        story::report(&results, network)
    })
}
