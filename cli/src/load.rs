//! From a scheduler, or an object, to what the kernel loads: checked, written as C, compiled, and
//! laid out in another way where the kernel's own compiler gives up.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use attune_backend_c as c;
use attune_kernel::{Compiler, Division, Image, Layout, LoadError, Members, Settings, support};
use attune_language::engine::Engine;
use attune_language::ir::Program;
use attune_language::source::SourceMap;
use attune_language::{Checked, EngineReport};

use crate::args::SourceArgs;
use crate::failure::Failure;
use crate::node::Node;
use crate::objects::Objects;
use crate::source::{accepted, checked};

/// Whether several instances of the scheduler can run, or why not. `alone`: it shares the machine
/// with no other.
pub fn may_be_split(text: &Text, alone: bool) -> Result<(), String> {
    if !alone {
        return Err("two schedulers that share the machine have one instance: add --all".into());
    }
    if !text.may_be_split {
        return Err(format!(
            "`{}` has no `arrives` of its own, so it orders the whole machine; say in the \
             scheduler what happens to a thread that arrives from another instance",
            text.scheduler
        ));
    }
    Ok(())
}

/// `attune check --load`: whether the kernel's verifier takes a scheduler that the kernel engine
/// accepts, or (None) an object.
pub fn try_load(
    scheduler: &Path,
    accepted: Option<(&Program, &EngineReport, &SourceMap)>,
) -> Result<(), Failure> {
    support::check().map_err(|missing| Failure::usage(missing.to_string()))?;
    let cpus = support::possible_cpus();
    let settings = Settings {
        seed: 0,
        cpus,
        partial: false,
        shares: Vec::new(),
        members: Members::default(),
        timeout_ms: 5000,
        strict: false,
        implicit: false,
        division: Division::whole(cpus),
    };
    let text = accepted.map(|(program, report, sources)| {
        attune_kernel::source(program, &report.verdicts, sources)
            .map_err(|refusal| Failure::wrong(refusal.to_string()))
    });
    let text = text.transpose()?;
    let text = text.as_deref();
    let image = |layout| image(scheduler, text, cpus, 1, layout);
    load(text.is_some(), image, |image| Ok(attune_kernel::try_load(image, &settings)))
}

/// Gives an object, or the text of a BPF program, to the kernel. A text whose program the kernel
/// cannot translate is laid out in another way.
pub fn load<T>(
    is_text: bool,
    image: impl Fn(Layout) -> Result<Image, Failure>,
    load: impl Fn(Image) -> Result<Result<T, LoadError>, Failure>,
) -> Result<T, Failure> {
    let attempt = |layout| load(image(layout)?);
    let loaded = match attempt(Layout::Usual)? {
        Err(LoadError::NotTranslated { .. }) if is_text => attempt(Layout::Plain)?,
        loaded => loaded,
    };
    loaded.map_err(|error| Failure::wrong(error.to_string()))
}

/// A compiled object as it is; of a text the object that was made of it before, or a new one.
pub fn image(
    scheduler: &Path,
    text: Option<&str>,
    cpus: u32,
    instances: u32,
    layout: Layout,
) -> Result<Image, Failure> {
    let Some(text) = text else { return read(scheduler) };
    let compiler = std::env::var("BPF_CLANG").unwrap_or_default();
    let flags = attune_kernel::compiler_flags(cpus, instances, layout);
    let words = format!("{compiler} {}\n{text}", flags.join(" "));
    let objects = Objects::open();
    let known = objects.as_ref().and_then(|objects| objects.get(&words));
    if let Some(Ok(image)) = known.map(Image::read) {
        return Ok(image);
    }
    let object = compiled(text, cpus, instances, layout)?;
    if let Some(objects) = objects {
        objects.put(&words, &object);
    }
    Image::read(object).map_err(|error| Failure::usage(error.to_string()))
}

fn compiled(text: &str, cpus: u32, instances: u32, layout: Layout) -> Result<Vec<u8>, Failure> {
    let folder = tempfile::tempdir()
        .map_err(|error| Failure::usage(format!("no temporary folder: {error}")))?;
    let object = folder.path().join("scheduler.bpf.o");
    let compiler = Compiler::find().map_err(|error| Failure::usage(error.to_string()))?;
    attune_kernel::compile(&compiler, text, &object, cpus, instances, layout)
        .map_err(|error| Failure::usage(error.to_string()))?;
    fs::read(&object).map_err(|error| Failure::file("read", &object, error))
}

/// A BPF program's text.
pub struct Text {
    pub c: String,
    /// Its name; with several, the name of the first.
    pub scheduler: String,
    /// It can run as several instances.
    pub may_be_split: bool,
    /// [`print`] of each scheduler, in the order of the schedulers.
    pub prints: Vec<u64>,
}

/// Tells whether another text came from the same words, wherever its files are.
fn print(sources: &SourceMap) -> u64 {
    let mut hasher = DefaultHasher::new();
    sources.ids().for_each(|id| sources.text(id).hash(&mut hasher));
    hasher.finish()
}

/// One scheduler as a BPF program, or several that share the machine, each with where its files
/// are; the last one is that of all other threads. `node`: the first is that of this family of a
/// master's nodes.
pub fn bpf_text(
    scheduler: &Path,
    node: Option<&str>,
    others: &[(&Path, SourceArgs)],
    source: &SourceArgs,
) -> Result<Text, Failure> {
    let first = checked(scheduler, source)?;
    let others: Vec<Checked> =
        others.iter().map(|(path, source)| checked(path, source)).collect::<Result<_, _>>()?;
    let node = match node.is_some() || first.cluster.is_some() {
        true => Some(Node::of(&first, scheduler, node, Engine::Kernel, &[])?),
        false => None,
    };
    let (program, report) = match &node {
        Some(node) => (node.program, node.report),
        None => accepted(&first, Engine::Kernel)?,
    };
    let mut policies =
        vec![c::Policy { program, verdicts: &report.verdicts, sources: &first.sources }];
    for other in &others {
        let (program, report) = accepted(other, Engine::Kernel)?;
        policies.push(c::Policy { program, verdicts: &report.verdicts, sources: &other.sources });
    }
    // What a cluster shares is exchanged with one instance.
    let may_be_split = program.may_be_split && node.is_none();
    let c = match node {
        Some(node) => attune_kernel::node_source(&policies, node.told),
        None => attune_kernel::shared_source(&policies),
    };
    Ok(Text {
        c: c.map_err(|refusal| Failure::wrong(refusal.to_string()))?,
        scheduler: program.name.clone(),
        may_be_split,
        prints: [&first].into_iter().chain(&others).map(|it| print(&it.sources)).collect(),
    })
}

/// Whether the file is what `attune build --engine kernel` makes.
pub fn is_object(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "o")
}

fn read(path: &Path) -> Result<Image, Failure> {
    let bytes =
        fs::read(path).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    Image::read(bytes).map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}
