//! How many events a second the machine and a scheduler of the library handle together:
//! `cargo run --release -p attune-simulator --example speed [SCHEDULER] [THREADS] [CPUS]`.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use attune_simulator::interpreter::{self, Interpreter};
use attune_simulator::{Options, Workload, simulate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let scheduler = arguments.next().unwrap_or("fair".into());
    let threads = arguments.next().unwrap_or("100".into());
    let cpus: u32 = arguments.next().unwrap_or("1".into()).parse()?;
    let mut opened = attune_schedulers::open(Path::new(&scheduler), &[])?;
    let checked = attune_language::check(&opened.source, &mut opened.loader, &Default::default());
    let program = checked.program.ok_or("the scheduler has errors: see `attune check`")?;
    let mut policy =
        Interpreter::new(Arc::new(program), &checked.sources, interpreter::Options::default())?;
    let text = format!(
        r#"
        duration = "500s"
        [[thread]]
        name = "t"
        count = {threads}
        repeat = "forever"
        do = [{{ compute = "uniform(0.1ms, 3ms)" }}, {{ sleep = "uniform(1ms, 100ms)" }}]
        "#
    );
    let workload = Workload::from_toml(&text, "speed")?;
    let before = Instant::now();
    let outcome =
        simulate(&mut policy, &workload, &Options { cpus: Some(cpus), ..Options::default() })?;
    let seconds = before.elapsed().as_secs_f64();
    println!(
        "{scheduler}, {threads} threads, {cpus} CPUs: {} events, {} handler calls in {seconds:.2} \
            s: \
         {:.2} million events a second, {:.0} ns each",
        outcome.events(),
        outcome.calls(),
        outcome.events() as f64 / seconds / 1e6,
        seconds * 1e9 / outcome.events() as f64
    );
    Ok(())
}
