//! `attune build`: a scheduler compiled for an engine.

use std::path::Path;
use std::process::ExitCode;

use attune_backend_c as c;
use attune_language::Checked;
use attune_language::engine::Engine;

use crate::args::BuildArgs;
use crate::failure::Failure;
use crate::load::{bpf_text, may_be_split};
use crate::node::Node;
use crate::output;
use crate::source::{accepted, checked};

pub fn run(args: &BuildArgs) -> Result<ExitCode, Failure> {
    let engine = Engine::from(args.engine);
    let ending = args.output.extension().and_then(|ending| ending.to_str());
    let (known, endings) = match engine {
        Engine::Kernel => (matches!(ending, Some("c" | "o")), ".bpf.c or .bpf.o"),
        // A folder.
        Engine::Embedded => (true, ""),
        _ => (matches!(ending, Some("c" | "so")), ".c or .so"),
    };
    if !known {
        let message = format!("{}: the output's name must end in {endings}", args.output.display());
        return Err(Failure::usage(message));
    }
    if args.node.is_some() && engine == Engine::Simulator {
        return Err(Failure::usage("--node: the simulator runs a whole cluster: `attune sim`"));
    }
    if engine == Engine::Kernel {
        return kernel(args);
    }
    if engine == Engine::Embedded {
        return firmware(args);
    }
    if args.others.is_some() {
        return Err(Failure::usage(
            "--others is for the kernel engine: two schedulers that share a machine",
        ));
    }
    let checked = checked(&args.scheduler, &args.source)?;
    if args.node.is_some() || checked.cluster.is_some() {
        return node(args, &checked, engine);
    }
    let (program, report) = accepted(&checked, engine)?;
    if engine == Engine::Simulator {
        return Err(Failure::usage("the simulator runs a scheduler as it is: `attune sim`"));
    }
    let options = c::Options { debug: args.debug };
    let source = c::generate(program, &report.verdicts, &checked.sources, &options)
        .map_err(|refusal| Failure::wrong(refusal.to_string()))?;
    finish(args, source)
}

/// The C, or the shared object made from it.
fn finish(args: &BuildArgs, source: String) -> Result<ExitCode, Failure> {
    match args.output.extension().and_then(|ending| ending.to_str()) {
        Some("c") => output::write(&args.output, source)?,
        _ => compile(&source, &args.output, args.debug)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The scheduler of one family of a cluster's nodes.
fn node(args: &BuildArgs, checked: &Checked, engine: Engine) -> Result<ExitCode, Failure> {
    let node = Node::of(checked, &args.scheduler, args.node.as_deref(), engine, &args.request)?;
    let options = c::Options { debug: args.debug };
    let Node { program, report, told, .. } = node;
    let source = c::generate_node(program, &report.verdicts, &checked.sources, &options, &told)
        .map_err(|refusal| Failure::wrong(refusal.to_string()))?;
    finish(args, source)
}

/// attune.c and attune.h, and what they take.
fn firmware(args: &BuildArgs) -> Result<ExitCode, Failure> {
    let checked = checked(&args.scheduler, &args.source)?;
    let sources = &checked.sources;
    let files = if args.node.is_some() || checked.cluster.is_some() {
        if !args.request.is_empty() {
            return Err(Failure::usage("--request: firmware has the model `cache` only"));
        }
        let (engine, family) = (Engine::Embedded, args.node.as_deref());
        let node = Node::of(&checked, &args.scheduler, family, engine, &[])?;
        let policy = c::Policy { program: node.program, verdicts: &node.report.verdicts, sources };
        attune_embedded::node_source(policy, args.debug, &node.schema, node.family)
    } else {
        let (program, report) = accepted(&checked, Engine::Embedded)?;
        let policy = c::Policy { program, verdicts: &report.verdicts, sources };
        attune_embedded::source(policy, args.debug)
    };
    let files = files.map_err(|refusal| Failure::wrong(refusal.to_string()))?;
    std::fs::create_dir_all(&args.output).map_err(|error| {
        Failure::usage(format!("cannot make the folder {}: {error}", args.output.display()))
    })?;
    let (c, h) = (args.output.join("attune.c"), args.output.join("attune.h"));
    output::write(&c, files.c)?;
    output::write(&h, files.h)?;
    let sizes = files.sizes;
    println!("{}, {}", c.display(), h.display());
    println!("memory on a 32-bit machine, in bytes, beside the stacks:");
    println!("  {:>6}  each of ATTUNE_THREADS thread records", sizes.thread);
    println!("  {:>6}  containers of the policy", sizes.containers);
    println!("  {:>6}  variables of the policy", sizes.variables);
    Ok(ExitCode::SUCCESS)
}

/// A BPF program: its C, or the object that `attune run` loads.
fn kernel(args: &BuildArgs) -> Result<ExitCode, Failure> {
    if args.debug {
        return Err(Failure::usage(
            "--debug is for engines in programs: the kernel engine has no debug build",
        ));
    }
    if !args.request.is_empty() {
        return Err(Failure::usage(
            "--request is for the programs of the threads engine, which can wait for an answer",
        ));
    }
    let plain = args.source.without_aspects();
    let others: Vec<_> = args.others.as_deref().map(|others| (others, plain)).into_iter().collect();
    let text = bpf_text(&args.scheduler, args.node.as_deref(), &others, &args.source)?;
    if args.instances > 1 {
        may_be_split(&text, args.others.is_none())
            .map_err(|why| Failure::usage(format!("--instances: {why}")))?;
    }
    let source = text.c;
    if args.output.extension().is_some_and(|ending| ending == "c") {
        output::write(&args.output, source)?;
    } else {
        let compiler =
            attune_kernel::Compiler::find().map_err(|error| Failure::usage(error.to_string()))?;
        let (cpus, instances, layout) = (args.cpus, args.instances, args.layout.into());
        attune_kernel::compile(&compiler, &source, &args.output, cpus, instances, layout)
            .map_err(|error| Failure::usage(error.to_string()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn compile(source: &str, path: &Path, debug: bool) -> Result<(), Failure> {
    c::compile(source, path, debug).map_err(|error| match error {
        // The compiler has read the scheduler's own verbatim text, and did not like it.
        c::CompileError::Failed { .. } => Failure::wrong(error.to_string()),
        _ => Failure::usage(error.to_string()),
    })
}
