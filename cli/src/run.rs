//! `attune run`: the machine's own threads follow a scheduler, as long as a command runs or until
//! Ctrl-C.

mod account;
mod begin;

use std::process::{Child, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use attune_broker::Broker;
use attune_daemon::policy::{Cause, Joined};
use attune_kernel::{Member, Running};

use crate::args::RunArgs;
use crate::diary::Diary;
use crate::failure::Failure;
use crate::join::{Borrower, Lender, Look, News, Policies};
use crate::node;
use crate::output::tell;
use begin::{Begun, begin, born, listen, owner};

/// What a shell says of a command that Ctrl-C has ended: 128 and the signal's number.
const INTERRUPTED: u8 = 130;
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
    let stop = Arc::new(AtomicBool::new(false));
    let Some(begun) = begin(args, diary, &stop)? else {
        let never_ran = stop.load(Ordering::Relaxed) && !args.command.is_empty();
        return Ok(if never_ran { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS });
    };
    let Begun { running, values, borrower, policies } = begun;
    diary.schedules(running.scheduler());
    tell!("attune: {}", account::whom(&running, args));
    for loss in attune_kernel::losses() {
        tell!("attune: {loss}");
    }
    let member = node::join(&running, args.cluster.as_deref())?;
    if let Some(member) = &member {
        node::wait_for_others(&running, member, &stop);
    }
    let mut child = born(&running, args)?;
    // The programs of --implicit go on at the kernel's tracepoints, and would write into records of
    // threads that they no longer know. A node's copy belongs to one run.
    let lends = !args.implicit && !args.partial && member.is_none();
    let lender = policies.clone().filter(|_| lends).map(Lender::of);
    let mut run = Run { args, running, values, policies, lender, borrower, member };
    run.tell_joined(&[]);
    let ended = watch(&mut run, child.as_mut(), &stop, diary)?;
    finish(run, child, ended, diary)
}

/// A policy in the kernel, and to which processes it speaks.
struct Run<'a> {
    args: &'a RunArgs,
    running: Running,
    values: Option<Broker>,
    policies: Option<Policies>,
    /// None: no other run can join this one.
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
        account::tell_followed(&run.running);
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
        if run.running.exit().is_some() {
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
    /// To the run that has joined this one, and to the one that it has joined. An error: the
    /// machine is lost.
    fn speak(&mut self, diary: &mut Diary) -> Result<(), String> {
        match self.borrower.as_mut().map_or(News::Nothing, Borrower::look) {
            News::Nothing => {}
            News::Follows => self.tell_joined(diary.joined()),
            News::Alone => tell!(
                "attune: the run that this one had joined has ended; this one keeps its policies"
            ),
        }
        if self.borrower.as_ref().is_some_and(Borrower::is_alone) {
            diary.is_left_alone();
        }
        let Some(lender) = &mut self.lender else { return Ok(()) };
        match lender.look(&mut self.running) {
            Look::Nothing => Ok(()),
            Look::Quiet(joined) => {
                let Joined { process, scheduler } = &joined;
                tell!("attune: {scheduler} joins, process {process}, which holds all from now on");
                self.values = None;
                lender.is_quiet(&self.running);
                self.lends(vec![joined], diary);
                Ok(())
            }
            Look::Joined(joined) => {
                self.lends(joined, diary);
                Ok(())
            }
            Look::TakeBack(settings, handover) => {
                let taken = self.take_back(&settings, diary);
                drop(handover);
                taken
            }
            Look::Lost => Err("another scheduler has the machine that was lent".to_owned()),
        }
    }

    fn lends(&self, joined: Vec<Joined>, diary: &mut Diary) {
        self.tell_joined(&joined);
        diary.lends(joined);
    }

    /// Tells the run that this one has joined who has the machine: this one, or those that have
    /// joined it.
    fn tell_joined(&self, joined: &[Joined]) {
        let Some(borrower) = &self.borrower else { return };
        let scheduler = self.running.policies().next().unwrap_or_default().to_owned();
        let own = Joined { process: std::process::id(), scheduler };
        borrower.tell([own].into_iter().chain(joined.iter().cloned()).collect());
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
        tell!("attune: {} again", account::whom(running, args));
        self.lender.iter_mut().for_each(Lender::has_it_again);
        self.lends(Vec::new(), diary);
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
    let Run { running, values, policies, mut lender, borrower, member, .. } = run;
    let Ended { status, lost } = ended;
    // Another run may listen there while this one waits for its command.
    drop(values);
    lender.iter_mut().for_each(Lender::stops_listening);
    let changes = policies.map_or(Vec::new(), |policies| policies.changes(&running.tunables()));
    let statistics = running.statistics();
    let scheduler = running.scheduler();
    let summary = account::summary(&running, &statistics);
    let exit = running.stop();
    // What the last handlers wrote is told before the node departs.
    drop(member);
    if let Some(borrower) = borrower {
        let follows = lender.as_ref().is_some_and(|lender| lender.leaves_to(borrower.lender()));
        if !follows {
            borrower.over(changes);
        }
    }
    tell!("{}", summary.trim_end());
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
