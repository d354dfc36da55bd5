//! The run that has the machine, and lends it to a newcomer.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

use attune_daemon::policy::Joined;
use attune_kernel::{MOST_POLICIES, Running, support};
use attune_linux::socket::{Connection, Listener};

use super::{Asked, Change, Handover, Policies, Said, hear, say, socket};
use crate::diary::DETACHED;
use crate::output::tell;

pub struct Lender {
    policies: Policies,
    /// None: it has lent the machine, and the newcomer listens; or no process can be told.
    listener: Option<Listener>,
    borrower: Option<Borrower>,
    state: State,
}

struct Borrower {
    connection: Connection,
    process: u32,
}

enum State {
    /// The lender's policies schedule.
    Has,
    /// They do, but a borrower listens to processes.
    Quiet,
    /// A borrower has the machine, or takes it now.
    Lent,
    /// The connection was closed then. The kernel may still be detaching what the borrower held; or
    /// the borrower was killed and a run that has joined it goes on.
    Returned(Instant, Vec<Change>),
}

/// What a look at the socket asks of the run.
pub enum Look {
    Nothing,
    /// Stop listening to processes, then call [`Lender::is_quiet`].
    Quiet(Joined),
    /// The runs that have the machine now.
    Joined(Vec<Joined>),
    /// The borrower is gone: attach again if that is needed, with these settings, and then call
    /// [`Lender::has_it_again`].
    TakeBack(Vec<(String, String)>, Handover),
    /// A scheduler that is not ours has the machine now.
    Lost,
}

impl Lender {
    /// A run that holds these policies as one object.
    pub fn of(policies: Policies) -> Lender {
        Lender { policies, listener: listen(), borrower: None, state: State::Has }
    }

    /// Whether the machine is another run's, or not yet this one's again.
    pub fn has_lent(&self) -> bool {
        !matches!(self.state, State::Has)
    }

    /// To be called again and again; it never waits.
    pub fn look(&mut self, running: &mut Running) -> Look {
        self.accept(running);
        if let State::Returned(..) = self.state {
            return self.takes_back(running);
        }
        let Some(borrower) = &mut self.borrower else { return Look::Nothing };
        match (hear(&borrower.connection), &self.state) {
            (Ok(None), _) => return Look::Nothing,
            (Ok(Some((Asked::Listen { scheduler }, _))), State::Has) => {
                self.state = State::Quiet;
                return Look::Quiet(Joined { process: borrower.process, scheduler });
            }
            (Ok(Some((Asked::Attach, _))), State::Quiet) => {
                running.lend();
                self.listener = None;
                self.state = State::Lent;
                if say(&borrower.connection, &Said::Detached, None).is_ok() {
                    return Look::Nothing;
                }
                self.returns(Vec::new());
            }
            (Ok(Some((Asked::Joined(joined), _))), State::Lent) => return Look::Joined(joined),
            (Ok(Some((Asked::Over(changes), _))), _) => self.returns(changes),
            // It is gone, or speaks another language.
            (Ok(Some(_)) | Err(_), _) => self.returns(Vec::new()),
        }
        Look::Nothing
    }

    /// The connection is of no use any more.
    fn returns(&mut self, changes: Vec<Change>) {
        self.borrower = None;
        if self.has_lent() {
            self.state = State::Returned(Instant::now(), changes);
        }
    }

    fn takes_back(&mut self, running: &Running) -> Look {
        let State::Returned(since, changes) = &mut self.state else { return Look::Nothing };
        match support::current() {
            // A run that had joined the borrower, or one that was sooner than this one.
            Some(other) if !running.is_attached() && other.starts_with(OURS) => {
                *since = Instant::now();
                return Look::Nothing;
            }
            _ if !running.is_attached() && support::busy().is_some() => {
                return if since.elapsed() > DETACHED { Look::Lost } else { Look::Nothing };
            }
            _ => {}
        }
        // Another run begins just now.
        let Ok(Some(handover)) = Handover::take() else { return Look::Nothing };
        if !running.is_attached() && support::busy().is_some() {
            return Look::Nothing;
        }
        Look::TakeBack(self.policies.settings(std::mem::take(changes)), handover)
    }

    /// This run's policies schedule again.
    pub fn has_it_again(&mut self) {
        self.state = State::Has;
        if self.listener.is_none() {
            self.listener = listen();
        }
    }

    /// No process is listened to: the borrower may.
    pub fn is_quiet(&mut self, running: &Running) {
        let quiet = Said::Quiet(self.policies.changes(&running.tunables()));
        if let Some(borrower) = &self.borrower
            && say(&borrower.connection, &quiet, None).is_err()
        {
            self.returns(Vec::new());
        }
    }

    /// The run ends, and no newcomer is to come. The next run to listen has the place then, from
    /// which this one must remove nothing any more.
    pub fn stops_listening(&mut self) {
        self.listener = None;
    }

    /// This run ends, and has detached. True: a run that has joined it has the machine, and gives
    /// it back to the other end of `lender`.
    pub fn leaves_to(&self, lender: &Connection) -> bool {
        let lends = matches!(self.state, State::Quiet | State::Lent);
        let borrower = self.borrower.as_ref().filter(|_| lends);
        borrower.is_some_and(|borrower| {
            say(&borrower.connection, &Said::Follow, Some(lender.as_fd())).is_ok()
        })
    }

    fn accept(&mut self, running: &Running) {
        let Some(listener) = &self.listener else { return };
        // A connection that is gone already is none.
        let Ok(Some(connection)) = listener.accept() else { return };
        let Ok(peer) = connection.peer() else { return };
        let policies = self.policies.living();
        let answer = match &self.borrower {
            _ if peer.user != 0 => Said::Refused("only root may".to_owned()),
            _ if policies.count() >= MOST_POLICIES => Said::Refused(format!(
                "{MOST_POLICIES} policies share the machine already, and no more can"
            )),
            None if !self.has_lent() => Said::Offer(policies),
            _ => Said::Later,
        };
        let offers = matches!(answer, Said::Offer(_));
        let members = running.members().ok().filter(|_| offers);
        if say(&connection, &answer, members.as_ref().map(AsFd::as_fd)).is_ok() && offers {
            self.borrower = Some(Borrower { connection, process: peer.process });
        }
    }
}

/// What the name of each policy begins with that a run of ours holds.
const OURS: &str = "attune_";

/// One run has the machine, so a socket that is there is a dead one's. None, which is said: no run
/// can join this one.
fn listen() -> Option<Listener> {
    let path = socket();
    let listener = at(&path);
    let told = |error: &io::Error| {
        tell!("attune: no other run can join this one: {}: {error}", path.display());
    };
    listener.inspect_err(told).ok()
}

fn at(path: &Path) -> io::Result<Listener> {
    let _ = fs::remove_file(path);
    let listener = Listener::at(path)?;
    // Root alone may connect.
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}
