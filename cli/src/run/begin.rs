//! From the words of `attune run` to policies that schedule: compiled, verified, told what is set,
//! and attached. A run with a command joins the one that has the machine.
//!
//! Invariant: nothing that runs changes before the kernel's verifier has taken the policies.

use std::error::Error;
use std::io;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use attune_broker::Broker;
use attune_daemon::state_folder;
use attune_kernel::{
    Division, Image, LoadError, Members, Per, Prepared, Running, Settings, Values, support,
};
use attune_linux::process;
use attune_values::wire;

use crate::args::{PerArg, RunArgs, SourceArgs};
use crate::child::cannot_run;
use crate::diary::Diary;
use crate::failure::Failure;
use crate::join::{self, Borrower, Handover, Policies};
use crate::load::{Text, bpf_text, image, is_object, load, may_be_split};
use crate::output::tell;
use crate::set;

/// So long a run waits at most, before it begins, for programs that supplied values to the run
/// before.
const CLIENTS_COME: Duration = Duration::from_millis(200);
/// How often a run asks the machine's holder anew when that ends before it has lent the machine.
const ATTEMPTS: usize = 20;

/// A policy in the kernel, and to which processes it speaks.
pub struct Begun {
    pub running: Running,
    pub values: Option<Broker>,
    /// The run has joined another one.
    pub borrower: Option<Borrower>,
    /// Which policies those are; None: those of an object, which no other run can make.
    pub policies: Option<Policies>,
}

enum Attempt {
    Begun(Box<Begun>),
    /// A process that stands by is not to take the holder's place.
    StandsDown,
    /// The machine has changed hands meanwhile, or the run is to end.
    Again,
}

/// None: a process that stood by is not to begin, or somebody said stop before the run began.
pub fn begin(
    args: &RunArgs,
    diary: &mut Diary,
    stop: &Arc<AtomicBool>,
) -> Result<Option<Begun>, Failure> {
    // A process that stands by holds nothing, so a signal ends it at once. Loading may take
    // seconds, for which the service's end would wait.
    if !args.standby {
        stops_at_signals(stop)?;
    }
    for _ in 0..ATTEMPTS {
        if stop.load(Ordering::Relaxed) {
            diary.ends_unbegun();
            return Ok(None);
        }
        match attempt(args, diary, stop)? {
            Attempt::Begun(begun) => return Ok(Some(*begun)),
            Attempt::StandsDown => return Ok(None),
            Attempt::Again => diary.begins_anew(),
        }
    }
    Err(Failure::wrong(format!(
        "each of {ATTEMPTS} times the run that had the machine ended before it could be joined"
    )))
}

fn attempt(args: &RunArgs, diary: &mut Diary, stop: &Arc<AtomicBool>) -> Result<Attempt, Failure> {
    let mut borrower = None;
    if args.standby {
        support::check_kernel().map_err(missing)?;
    } else {
        match support::check() {
            Err(busy @ support::Missing::Busy(_)) if may_join(args) => {
                let refused = |why| {
                    let message = missing(busy).message().to_owned();
                    Failure::usage(format!("{message}. This run cannot join it: {why}"))
                };
                match Borrower::ask(stop).map_err(refused)? {
                    Some(lender) => borrower = Some(lender),
                    None => return Ok(Attempt::Again),
                }
            }
            found => found.map_err(missing)?,
        }
        diary.begins()?;
    }
    let made = Made::of(args, borrower.as_ref())?;
    let prepared = made.prepare(args, borrower.as_ref())?;
    if args.standby {
        if !diary.stands_by()? {
            return Ok(Attempt::StandsDown);
        }
        stops_at_signals(stop)?;
    }
    let Some(handover) = Handover::wait(stop)? else { return Ok(Attempt::Again) };
    let mut changes = Vec::new();
    if let Some(borrower) = &mut borrower {
        diary.joins();
        let Ok(set) = borrower.may_listen(made.scheduler()) else { return Ok(Attempt::Again) };
        changes = made.policies.as_ref().map_or(Vec::new(), |policies| policies.settings(set));
    } else if may_join(args) && support::busy().is_some() {
        return Ok(Attempt::Again);
    }
    for change in &args.set {
        changes.push(set::setting(change)?);
    }
    // The first decision knows the hints and the values of programs that supplied some to the run
    // before.
    let values = listen(prepared.values(owner(), args.trust_programs), diary);
    if let Some(borrower) = &mut borrower {
        borrower.may_attach();
    }
    let running = match prepared.attach() {
        Err(LoadError::Missing(support::Missing::Busy(_))) if may_join(args) => {
            return Ok(Attempt::Again);
        }
        attached => attached.map_err(|error| Failure::wrong(error.to_string()))?,
    };
    drop(handover);
    running.set(&changes).map_err(|error| Failure::usage(error.to_string()))?;
    diary.set_again(&running);
    let policies = made.policies;
    Ok(Attempt::Begun(Box::new(Begun { running, values, borrower, policies })))
}

fn missing(missing: support::Missing) -> Failure {
    match &missing {
        support::Missing::Busy(_) if Diary::service_runs() => Failure::usage(format!(
            "{missing}. `attuned` keeps that one: `systemctl stop attuned` ends both"
        )),
        _ => Failure::usage(missing.to_string()),
    }
}

/// What is to be loaded.
struct Made {
    /// None: an object that is there already.
    text: Option<Text>,
    policies: Option<Policies>,
}

impl Made {
    fn of(args: &RunArgs, borrower: Option<&Borrower>) -> Result<Made, Failure> {
        if is_object(&args.scheduler) {
            return Ok(Made { text: None, policies: None });
        }
        let fair = Path::new("fair");
        let borrowed = borrower.map(|borrower| &borrower.policies);
        let others: Vec<(&Path, SourceArgs)> = match borrowed {
            Some(policies) => policies.in_order().map(|it| (it.scheduler(), it.source())).collect(),
            None if is_alone(args) => Vec::new(),
            None => {
                let others = args.others.as_deref().unwrap_or(fair);
                vec![(others, args.source.without_aspects())]
            }
        };
        let text = bpf_text(&args.scheduler, args.node.as_deref(), &others, &args.source)?;
        let print = |index: usize| text.prints.get(index).copied().unwrap_or_default();
        if let Some(policies) = borrowed {
            for (policy, index) in policies.in_order().zip(1..) {
                policy.is_as_it_was(print(index))?;
            }
        }
        let policy = |index, scheduler, source| join::Policy::new(scheduler, source, print(index));
        let own = policy(0, &args.scheduler, &args.source);
        let command = join::Command::own(args.weight, own.clone());
        let policies = match (borrowed, others.first()) {
            (Some(policies), _) => Policies {
                commands: [command].into_iter().chain(policies.commands.clone()).collect(),
                others: policies.others.clone(),
            },
            (None, Some((scheduler, source))) => {
                Policies { commands: vec![command], others: policy(1, scheduler, source) }
            }
            (None, None) => Policies { commands: Vec::new(), others: own },
        };
        Ok(Made { text: Some(text), policies: Some(policies) })
    }

    fn scheduler(&self) -> &str {
        self.text.as_ref().map_or("", |text| &text.scheduler)
    }

    /// The verifier takes it.
    fn prepare(&self, args: &RunArgs, borrower: Option<&Borrower>) -> Result<Prepared, Failure> {
        let (cpus, alone) = (support::possible_cpus(), is_alone(args));
        let policies = self.policies.as_ref();
        let members = policies.filter(|policies| !policies.commands.is_empty());
        let map = borrower.and_then(|borrower| borrower.members.clone());
        let settings = Settings {
            division: division(args, alone, self.text.as_ref(), cpus)?,
            seed: args.seed,
            cpus,
            partial: args.partial,
            shares: policies.map_or(args.weight.to_vec(), Policies::shares),
            members: members.map_or(Members::default(), |policies| policies.members(map)),
            timeout_ms: args.timeout.clamp(100, 30_000),
            strict: args.strict,
            implicit: args.implicit,
        };
        let c = self.text.as_ref().map(|text| text.c.as_str());
        let instances = settings.division.instances();
        let image = |layout| image(&args.scheduler, c, cpus, instances, layout);
        load(c.is_some(), image, |image| {
            if c.is_none() {
                fits(&image, alone)?;
            }
            Ok(attune_kernel::prepare(image, &settings))
        })
    }
}

/// Whether one policy has all threads that it may have.
fn is_alone(args: &RunArgs) -> bool {
    args.all || args.partial
}

/// Ctrl-C and SIGTERM end the run in good order from now on.
fn stops_at_signals(stop: &Arc<AtomicBool>) -> Result<(), Failure> {
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())
            .map_err(|error| Failure::usage(format!("cannot listen to signals: {error}")))?;
    }
    Ok(())
}

/// Whether this run could join another one.
fn may_join(args: &RunArgs) -> bool {
    let shares = !args.command.is_empty() && !args.all && !args.partial;
    shares && args.others.is_none() && args.node.is_none() && !is_object(&args.scheduler)
}

/// Which instance has which CPUs.
fn division(
    args: &RunArgs,
    alone: bool,
    text: Option<&Text>,
    cpus: u32,
) -> Result<Division, Failure> {
    let by_itself = || alone && text.is_some_and(|text| text.may_be_split);
    let per = match args.per {
        None if by_itself() => Per::Cache,
        None | Some(PerArg::Machine) => return Ok(Division::whole(cpus)),
        Some(PerArg::Cache) => Per::Cache,
        Some(PerArg::Cpu) => Per::Cpu,
    };
    if let Some(text) = text {
        may_be_split(text, alone).map_err(|why| Failure::usage(format!("--per: {why}")))?;
    }
    Ok(Division::here(per, cpus))
}

/// The command, following its policy from its first instruction on.
pub fn born(running: &Running, args: &RunArgs) -> Result<Option<Child>, Failure> {
    let Some((program, rest)) = args.command.split_first() else { return Ok(None) };
    let mut command = Command::new(program);
    command.args(rest);
    let child = match is_alone(args) {
        true => command.spawn(),
        false => running.as_command(|| command.spawn()).and_then(|child| child),
    };
    child.map(Some).map_err(|error| cannot_run(program, &error))
}

/// An object was made for one way of running.
fn fits(image: &Image, alone: bool) -> Result<(), Failure> {
    let names: Vec<&str> = image.policies().collect();
    match (alone, names.as_slice()) {
        (true, [_]) | (false, [_, _]) => Ok(()),
        (true, _) => Err(Failure::usage(format!(
            "this object holds {}, to share the machine: leave out --all and --partial, and give a \
                command",
            names.join(" and ")
        ))),
        (false, _) => Err(Failure::usage(format!(
            "this object holds {} only: run it with --all, or build it with --others SCHED",
            names.join(" and ")
        ))),
    }
}

/// Programs may supply values from now on, and the owner may look and set. Without that the
/// scheduler runs all the same.
pub fn listen(
    values: Result<Values, impl Error + Send + Sync + 'static>,
    diary: &Diary,
) -> Option<Broker> {
    let path = wire::path();
    let kept = state_folder().join("values.json");
    let started = match values {
        Ok(store) => Broker::keeping(Some(&kept), &path, diary.listens(store)),
        Err(error) => Err(io::Error::other(error)),
    };
    match started {
        Ok(broker) => {
            broker.wait_for_clients(CLIENTS_COME);
            Some(broker)
        }
        Err(error) => {
            let why = match error.kind() {
                io::ErrorKind::AddrInUse => format!(
                    "another engine listens there; name another place in {} for this run and for \
                        what speaks to it",
                    wire::PATH_VARIABLE
                ),
                _ => error.to_string(),
            };
            let path = path.display();
            tell!(
                "attune: programs cannot supply values, nor `attune set` and `attune top` reach \
                    this run: {path}: {why}"
            );
            None
        }
    }
}

/// Whose run this is: the user who said so, through sudo perhaps.
pub fn owner() -> u32 {
    let user = process::user();
    let through_sudo = || std::env::var("SUDO_UID").ok()?.parse().ok();
    if user == 0 { through_sudo().unwrap_or(user) } else { user }
}
