//! `attune run`: the machine's own threads follow a scheduler, as long as a command runs or until
//! Ctrl-C.

mod account;

use std::error::Error;
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use attune_broker::Broker;
use attune_daemon::policy::{Cause, Joined};
use attune_daemon::state_folder;
use attune_kernel::{
    Division, Exit, Image, Member, Members, Per, Running, Settings, Values, support,
};
use attune_linux::process;
use attune_values::wire;

use crate::args::{PerArg, RunArgs};
use crate::child::cannot_run;
use crate::diary::Diary;
use crate::failure::Failure;
use crate::join::{Borrower, Lender, Look};
use crate::load::{Text, bpf_text, image, is_object, load, may_be_split};
use crate::node;
use crate::output::tell;
use crate::reload;
use crate::set;

/// So long a run waits at most, before it begins, for programs that supplied values to the run
/// before.
const CLIENTS_COME: Duration = Duration::from_millis(200);

/// How often the scheduler and the command are looked at.
const LOOK: Duration = Duration::from_millis(50);

pub fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let mut diary = Diary::new(&args.scheduler, args.service);
    let ended = schedule(args, &mut diary);
    if let Err(failure) = &ended {
        diary.failed(failure);
    }
    ended
}

fn schedule(args: &RunArgs, diary: &mut Diary) -> Result<ExitCode, Failure> {
    let missing = |missing: support::Missing| match &missing {
        support::Missing::Busy(_) if Diary::service_runs() => Failure::usage(format!(
            "{missing}. `attuned` keeps that one: `systemctl stop attuned` ends both"
        )),
        _ => Failure::usage(missing.to_string()),
    };
    let mut borrower = None;
    if args.standby {
        support::check_kernel().map_err(missing)?;
    } else {
        match support::check() {
            Err(busy @ support::Missing::Busy(_)) if may_join(args) => {
                let alone = |why| {
                    let message = missing(busy).message().to_owned();
                    Failure::usage(format!("{message}. This run cannot join it: {why}"))
                };
                borrower = Some(Borrower::ask().map_err(alone)?);
            }
            found => found.map_err(missing)?,
        }
        diary.begins()?;
    }
    let cpus = support::possible_cpus();
    let alone = args.all || args.partial;
    let fair = Path::new("fair");
    let scheduler = borrower.as_ref().map(|borrower| borrower.offer.scheduler());
    let source = borrower.as_ref().map(|borrower| borrower.offer.source());
    let source = source.unwrap_or_else(|| args.source.without_aspects());
    let others = scheduler.or(args.others.as_deref()).unwrap_or(fair);
    let others = (!alone).then_some((others, &source));
    let text = match is_object(&args.scheduler) {
        true => None,
        false => Some(bpf_text(&args.scheduler, args.node.as_deref(), others, &args.source)?),
    };
    if let Some(borrower) = &borrower {
        borrower.offer.is_as_it_was()?;
    }
    let division = division(args, alone, text.as_ref(), cpus)?;
    let settings = Settings {
        division,
        seed: args.seed,
        cpus,
        partial: args.partial,
        shares: args.weight.to_vec(),
        members: Members::default(),
        timeout_ms: args.timeout.clamp(100, 30_000),
        strict: args.strict,
        implicit: args.implicit,
    };
    let stop = Arc::new(AtomicBool::new(false));
    // A process that stands by holds nothing, so a signal ends it at once. Loading may take
    // seconds, for which the service's end would wait.
    if !args.standby {
        stops_at_signals(&stop)?;
    }
    let c = text.as_ref().map(|text| text.c.as_str());
    let instances = settings.division.instances();
    let image = |layout| image(&args.scheduler, c, cpus, instances, layout, Some(diary));
    let mut changes =
        args.set.iter().map(|change| set::setting(change)).collect::<Result<Vec<_>, Failure>>()?;
    let prepared = load(c.is_some(), image, |image| {
        fits(&image, alone)?;
        Ok(attune_kernel::prepare(image, &settings))
    })?;
    if args.standby {
        if !diary.stands_by()? {
            return Ok(ExitCode::SUCCESS);
        }
        stops_at_signals(&stop)?;
    }
    if let Some(borrower) = &mut borrower {
        diary.joins();
        let name = text.as_ref().map_or("", |text| &text.scheduler);
        changes.splice(0..0, borrower.may_listen(name)?);
    }
    // The first decision knows the hints and the values of programs that supplied some to the run
    // before.
    let values = listen(prepared.values(owner(), args.trust_programs), diary);
    if let Some(borrower) = &mut borrower {
        borrower.may_attach()?;
    }
    let running = prepared.attach().map_err(|error| Failure::wrong(error.to_string()))?;
    running.set(&changes).map_err(|error| Failure::usage(error.to_string()))?;
    diary.set_again(&running);
    diary.schedules(running.scheduler());
    tell!("attune: {}", account::whom(&running, args));
    for loss in attune_kernel::losses() {
        tell!("attune: {loss}");
    }
    let member = node::join(&running, args.cluster.as_deref())?;
    if let Some(member) = &member {
        node::wait_for_others(&running, member, &stop);
    }
    let mut child = born(&running, args, alone)?;
    let lends = borrower.is_none() && member.is_none();
    let lender = if lends { Lender::of(args, text.as_ref()) } else { None };
    let mut run = Run { args, running, values, lender, borrower, member };
    let ended = watch(&mut run, child.as_mut(), &stop, diary)?;
    finish(run, child, ended, diary)
}

/// Ctrl-C and SIGTERM end the run in good order from now on.
fn stops_at_signals(stop: &Arc<AtomicBool>) -> Result<(), Failure> {
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())
            .map_err(|error| Failure::usage(format!("cannot listen to signals: {error}")))?;
    }
    Ok(())
}

/// A policy in the kernel, and to which processes it speaks.
struct Run<'a> {
    args: &'a RunArgs,
    running: Running,
    values: Option<Broker>,
    lender: Option<Lender>,
    borrower: Option<Borrower>,
    /// What it is in a cluster.
    member: Option<Member>,
}

/// Why a run is over: its command is, the kernel or a user has ended it, or it lent the machine and
/// has not got it back.
#[derive(Default)]
struct Ended {
    status: Option<ExitStatus>,
    lost: Option<String>,
}

/// Whether this run could be a second policy beside one that has the whole machine.
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
fn born(running: &Running, args: &RunArgs, alone: bool) -> Result<Option<Child>, Failure> {
    let Some((program, rest)) = args.command.split_first() else { return Ok(None) };
    let mut command = Command::new(program);
    command.args(rest);
    let child = match alone {
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
fn listen(
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
fn owner() -> u32 {
    let user = process::user();
    let through_sudo = || std::env::var("SUDO_UID").ok()?.parse().ok();
    if user == 0 { through_sudo().unwrap_or(user) } else { user }
}

/// Until the command ends, the scheduler ends, or somebody says stop.
fn watch(
    run: &mut Run<'_>,
    mut child: Option<&mut Child>,
    stop: &AtomicBool,
    diary: &mut Diary,
) -> Result<Ended, Failure> {
    let every = run.args.stats.map(Duration::from_secs);
    let mut reported = Instant::now();
    let mut before = run.running.statistics();
    let mut told = 0;
    loop {
        told = account::tell_rescued(&run.running, told);
        if let Some(child) = &mut child {
            let status = child
                .try_wait()
                .map_err(|error| Failure::usage(format!("the command: {error}")))?;
            if status.is_some() {
                return Ok(Ended { status, lost: None });
            }
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(Ended::default());
        }
        if let Err(why) = run.speak(diary) {
            return Ok(Ended { status: None, lost: Some(why) });
        }
        if run.lender.as_ref().is_some_and(Lender::has_lent) {
            run.running.wait(LOOK);
            continue;
        }
        if let Some(exit) = run.running.exit()
            && (!exit.cpus_changed || !run.goes_on()?)
        {
            return Ok(Ended::default());
        }
        if every.is_some_and(|every| reported.elapsed() >= every) {
            let now = run.running.statistics();
            tell!("attune: {}", account::since(&run.running, &before, &now, reported.elapsed()));
            (before, reported) = (now, Instant::now());
        }
        run.running.wait(LOOK);
    }
}

impl Run<'_> {
    /// Begins anew because a CPU came or went; as a node, too, for its threads and variables do.
    /// False: it cannot.
    fn goes_on(&mut self) -> Result<bool, Failure> {
        let was_member = self.member.take().is_some();
        let goes_on = reload::goes_on(&mut self.running);
        if was_member && goes_on {
            self.member = node::join(&self.running, self.args.cluster.as_deref())?;
        }
        Ok(goes_on)
    }

    /// To the run that has joined this one, or that it has joined. An error: the machine is lost.
    fn speak(&mut self, diary: &mut Diary) -> Result<(), String> {
        if self.borrower.as_mut().is_some_and(Borrower::is_left_alone) {
            diary.is_left_alone();
            tell!("attune: the run that had the machine has ended; this one keeps both policies");
        }
        let Some(lender) = &mut self.lender else { return Ok(()) };
        match lender.look(&mut self.running) {
            Look::Nothing => Ok(()),
            Look::Quiet { process, scheduler } => {
                tell!("attune: {scheduler} joins, process {process}, which holds both from now on");
                diary.lends(Some(Joined { process, scheduler }));
                self.values = None;
                lender.is_quiet(&self.running);
                Ok(())
            }
            Look::TakeBack(settings) => self.take_back(&settings, diary),
            Look::Lost => Err("another scheduler has the machine that was lent".to_owned()),
        }
    }

    fn take_back(
        &mut self,
        settings: &[(String, String)],
        diary: &mut Diary,
    ) -> Result<(), String> {
        let Run { running, args, .. } = self;
        self.values = listen(running.values(owner(), args.trust_programs), diary);
        if !running.is_attached() {
            running.reload().map_err(|error| format!("the machine was lent: {error}"))?;
        }
        if let Err(error) = running.set(settings) {
            tell!("attune: what was set meanwhile: {error}");
        }
        diary.lends(None);
        tell!("attune: {} again", account::whom(running, args));
        Ok(())
    }
}

/// Detaches, then waits for the command: it goes on under the fair class.
fn finish(
    run: Run<'_>,
    child: Option<Child>,
    ended: Ended,
    diary: &mut Diary,
) -> Result<ExitCode, Failure> {
    let Run { running, values, lender, borrower, member, .. } = run;
    let Ended { status, lost } = ended;
    // Another run may listen there while this one waits for its command.
    drop(values);
    let settings = borrower.as_ref().map(|_| Borrower::settings(&running));
    let statistics = running.statistics();
    // The command may end at the moment in which a CPU goes.
    let thrown_out = running.exit().filter(|exit| status.is_none() || !exit.cpus_changed);
    let scheduler = running.scheduler();
    let summary = account::summary(&running, &statistics);
    let exit = running.stop();
    // What the last handlers wrote is told before the node departs.
    drop(member);
    if let (Some(borrower), Some(settings)) = (borrower, settings) {
        borrower.over(settings);
    }
    tell!("{}", summary.trim_end());
    let exit = thrown_out.unwrap_or(if exit.cpus_changed { Exit::default() } else { exit });
    let verdict = account::verdict(&scheduler, &exit).or(lost);
    if let Some(verdict) = &verdict {
        tell!("attune: {verdict}");
    }
    let asked = if status.is_some() { "its command is over" } else { "it was asked to end" };
    match &verdict {
        Some(verdict) => diary.ends(Cause::Kernel, verdict),
        None => diary.ends(Cause::Asked, asked),
    }
    // A run that has joined this one writes into the record from now on.
    drop(lender);
    let status = match (status, child) {
        (None, Some(mut child)) => {
            Some(child.wait().map_err(|error| Failure::usage(format!("the command: {error}")))?)
        }
        (status, _) => status,
    };
    let code = status.map_or(0, |status| status.code().unwrap_or(1).clamp(0, 255) as u8);
    Ok(ExitCode::from(if verdict.is_some() && code == 0 { 1 } else { code }))
}
