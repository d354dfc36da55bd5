//! The kernel engine's own C, compiled for this machine behind a model of the kernel (`model/`):
//! CPUs that take turns in an order which a seed decides, go and come, threads that wake, block,
//! fork, exit and change affinity and class at any moment, and between them the engine with several
//! instances.
//!
//! What it finds: a thread that is lost or in two places, one where it may not run, a CPU that
//! idles beside work, books of lags and loads that do not add up. A kernel shows these once in a
//! million switches; here 100 000 events take a second, and the same seed makes the same events.
//!
//! Invariant: the engine's text is used as it is, but for [`CHANGES`].

mod mutants;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, anyhow, bail, ensure};
use attune_kernel::Compiler;
use attune_language::check;
use attune_language::engine::Engine;

pub use mutants::{MUTANTS, Mutant};

const BEFORE: &str = include_str!("model/kernel.h");
const BEHIND: [&str; 7] = [
    include_str!("model/machine.c"),
    include_str!("model/calls.c"),
    include_str!("model/scheduling.c"),
    include_str!("model/hotplug.c"),
    include_str!("model/programs.c"),
    include_str!("model/audit.c"),
    include_str!("model/main.c"),
];

/// What stands otherwise in the text for it to run here: memory, sections and helpers of BPF, the
/// lock, and constants that a loader would set.
const CHANGES: &[(&str, &str)] = &[
    ("#define ATTUNE_ARENA __attribute__((address_space(1)))", "#define ATTUNE_ARENA"),
    (
        "#define ATTUNE_MAY_LOOP_AT(place)",
        "#undef ATTUNE_MAY_GO_ON\n#define ATTUNE_MAY_GO_ON model_may_loop()\n\
         #define ATTUNE_MAY_LOOP_AT(place)",
    ),
    (
        "#define ATTUNE_SECTION(name) __attribute__((section(name), used))",
        "#define ATTUNE_SECTION(name) __attribute__((used))",
    ),
    ("extern __attribute__((section(\".ksyms\")))", "extern"),
    ("__attribute__((section(\".ksyms\"), weak))", "__attribute__((weak))"),
    ("const volatile ", "volatile "),
    ("__builtin_preserve_enum_value(*(enum cpuhp_state *)CPUHP_AP_ACTIVE, 1)", "CPUHP_AP_ACTIVE"),
    (
        "return !__sync_val_compare_and_swap(word, 0, 1) || attune_wait(word);",
        "return model_take(word);",
    ),
    (
        "    attune_release(&attune_locked[attune_held()]);\n",
        "    attune_release(&attune_locked[attune_held()]);\n    model_gave();\n",
    ),
];
/// The helpers that the engine calls, by their numbers.
const HELPERS: &[u32] = &[1, 5, 8, 115, 130, 154, 156, 158, 169, 170, 171];

/// A machine, as [`Machine::run`] runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub cpus: u32,
    pub instances: u32,
    /// CPUs that share a cache.
    pub per_cache: u32,
}

/// The shapes that are tried: an instance for each CPU, in two caches; and one for each cache.
pub const SHAPES: [Shape; 2] =
    [Shape { cpus: 4, instances: 4, per_cache: 2 }, Shape { cpus: 6, instances: 2, per_cache: 3 }];

/// Policies that may be split.
const POLICIES: &[&str] = &[WEIGHTED, "round_robin"];
/// The one that knows weights.
const WEIGHTED: &str = "fair";
/// Nice values of threads that compute.
const LOADS: &[&[i32]] = &[
    &[0, 0, 0, 0, 0, 0, 0, 0],
    &[0, 0, 0, 0, 0, 0, 0],
    &[0, 0, 0, 0, 0],
    &[3, 3, 3, 3, 0, 0, 0],
    &[0, 5, 5, 5, 5, 5, 5],
    &[0, 0, 0, 0, 0, 0, 0, 0, 5, 5, 5, -3],
];
const SECONDS: u64 = 10;
/// So many per cent of what it is due may a thread have had more or less.
const MOST_OFF: f64 = 5.0;

/// A policy of the library and the engine, compiled for this machine.
pub struct Machine {
    folder: tempfile::TempDir,
    shape: Shape,
}

/// What a run said, or what was broken.
pub type Outcome = std::result::Result<String, String>;

impl Machine {
    /// `edit` changes the text; None where it cannot.
    pub fn build(
        policy: &str,
        shape: Shape,
        edit: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Machine>> {
        let Some(text) = edit(&engine_text(policy)?) else { return Ok(None) };
        let folder = tempfile::tempdir().context("a temporary folder")?;
        let source = folder.path().join("machine.c");
        std::fs::write(&source, [BEFORE, &here(&text)?, &BEHIND.concat()].concat())?;
        let machine = Machine { folder, shape };
        compile(&source, &machine.program(), shape)?;
        Ok(Some(machine))
    }

    /// Random events, `seed` decides which.
    pub fn storm(&self, seed: u64, events: u64) -> Result<Outcome> {
        self.run("storm", seed, events, &[])
    }

    /// Ten seconds of threads that compute, one for each nice value: each has its share of the
    /// machine by weight.
    pub fn share(&self, seed: u64, nices: &[i32]) -> Result<Outcome> {
        let said = match self.run("share", seed, SECONDS, nices)? {
            Ok(said) => said,
            broken => return Ok(broken),
        };
        let off = said.split(' ').next().and_then(|off| off.parse::<f64>().ok());
        let off = off.with_context(|| format!("no share in `{said}`"))?;
        Ok(if off <= MOST_OFF { Ok(said) } else { Err(format!("shares of {nices:?}: {said}")) })
    }

    /// The shares of some loads, if the policy knows weights. What came, or what was broken.
    pub fn shares(&self, policy: &str, seed: u64) -> Result<Outcome> {
        let mut all = Vec::new();
        for nices in if policy == WEIGHTED { LOADS } else { &[] } {
            match self.share(seed, nices)? {
                Ok(said) => all.push(format!("{} threads {said}", nices.len())),
                broken => return Ok(broken),
            }
        }
        Ok(Ok(all.join("; ")))
    }

    fn run(&self, what: &str, seed: u64, count: u64, more: &[i32]) -> Result<Outcome> {
        let words = [seed.to_string(), count.to_string(), self.shape.per_cache.to_string()];
        let more = more.iter().map(i32::to_string);
        let output = Command::new(self.program()).arg(what).args(words).args(more).output()?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(if output.status.success() {
            Ok(said)
        } else {
            Err(if said.is_empty() { output.status.to_string() } else { said })
        })
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("machine")
    }
}

/// Runs all machines; says what each did.
pub fn try_all(seed: u64, events: u64) -> Result<ExitCode> {
    let mut fine = true;
    for (policy, shape) in machines() {
        let machine = Machine::build(policy, shape, &|text| Some(text.to_owned()))?;
        let machine = machine.context("the text is as it is")?;
        let outcome = match machine.storm(seed, events)? {
            Ok(storm) => machine.shares(policy, seed)?.map(|shares| format!("{storm}; {shares}")),
            broken => broken,
        };
        let Shape { cpus, instances, .. } = shape;
        fine &= outcome.is_ok();
        let said = outcome.unwrap_or_else(|broken| broken);
        println!("{policy}, {cpus} CPUs, {instances} instances: {said}");
    }
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Tries the mutants whose name holds `name`; says what became of each.
pub fn try_mutants(name: &str, seed: u64, events: u64) -> Result<ExitCode> {
    let (mut tried, mut missed) = (0, 0);
    for mutant in MUTANTS.iter().filter(|mutant| mutant.name.contains(name)) {
        let caught = mutant.caught(seed, events)?;
        tried += 1;
        missed += u32::from(caught.is_none());
        let fate = caught.unwrap_or("SURVIVED".to_owned());
        println!("{:<20} {}\n    {fate}", mutant.name, mutant.breaks);
    }
    println!("{} of {tried} mutants caught", tried - missed);
    Ok(if missed == 0 && tried > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// All that are tried.
pub fn machines() -> impl Iterator<Item = (&'static str, Shape)> {
    POLICIES.iter().flat_map(|policy| SHAPES.map(|shape| (*policy, shape)))
}

/// The engine behind a policy of the library.
fn engine_text(policy: &str) -> Result<String> {
    let mut opened = attune_schedulers::open(Path::new(policy), &[])?;
    let checked = check(&opened.source, &mut opened.loader, &Default::default());
    let report = checked.engine(Engine::Kernel);
    let program = checked.program.as_ref().filter(|_| report.accepted);
    let program = program.ok_or_else(|| anyhow!("{policy} cannot be run by the kernel engine"))?;
    Ok(attune_kernel::source(program, &report.verdicts, &checked.sources)?)
}

/// The text with [`CHANGES`].
fn here(text: &str) -> Result<String> {
    let mut text = text.to_owned();
    for (find, replace) in CHANGES {
        ensure!(text.contains(find), "the engine has no `{find}`");
        text = text.replace(find, replace);
    }
    for number in HELPERS {
        text = text
            .replace(&format!("= (void *){number};"), &format!("= (void *)model_helper_{number};"));
    }
    let kept = text.lines().filter(|line| !line.starts_with("#pragma clang attribute"));
    Ok(kept.map(|line| format!("{line}\n")).collect())
}

fn compile(source: &Path, program: &Path, shape: Shape) -> Result<()> {
    let compiler = Compiler::find()?;
    let output = Command::new(compiler.command())
        .args(["-O1", "-g", "-std=gnu11", "-w", "-D__builtin_preserve_field_info(x,kind)=0"])
        .arg(format!("-DATTUNE_CPUS={}", shape.cpus))
        .arg(format!("-DATTUNE_INSTANCES={}", shape.instances))
        .arg("-o")
        .args([program, source])
        .output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
