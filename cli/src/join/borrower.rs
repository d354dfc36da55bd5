//! The run that joins: it borrows the machine for as long as its command lasts.

use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use attune_daemon::policy::Joined;
use attune_kernel::support;
use attune_linux::poll::is_readable;
use attune_linux::socket::Connection;

use super::handover::SAYS_SO;
use super::{Asked, Change, Policies, Said, hear, say, socket};
use crate::diary::wait_until_detached;
use crate::output::tell;

/// A lender looks at its socket every 50 ms, but may stop to listen and detach in between.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the machine may change hands while another run joins: that compiles and loads.
const CHANGES_HANDS: Duration = Duration::from_secs(120);
/// How long nobody listens while it does.
const NOBODY: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(100);

pub struct Borrower {
    /// All that the lender has.
    pub policies: Policies,
    /// [`attune_kernel::Members::map`].
    pub members: Option<Arc<OwnedFd>>,
    lender: Connection,
    alone: bool,
}

/// The lender is gone, or has said what nobody understands. Another may have the machine.
pub struct Gone;

/// What has become of the lender.
pub enum News {
    Nothing,
    /// It has ended, and the one before it has taken its place.
    Follows,
    /// It has ended, and this run has the machine for itself.
    Alone,
}

/// What a lender answers first.
enum Answer {
    Offered(Borrower),
    Later,
    /// Nobody listens, or the one that listened is gone.
    Nobody,
}

impl Borrower {
    /// Asks the run that has the machine. None: it is free now, or `stop` says that this run is to
    /// end. An error says why nobody lends it.
    pub fn ask(stop: &AtomicBool) -> Result<Option<Borrower>, String> {
        let (begun, mut nobody_since, mut told) = (Instant::now(), None, false);
        while !stop.load(Ordering::Relaxed) {
            match answer()? {
                Answer::Offered(borrower) => return Ok(Some(borrower)),
                Answer::Later if begun.elapsed() > CHANGES_HANDS => {
                    return Err("another run has been joining it for two minutes".to_owned());
                }
                Answer::Later => nobody_since = None,
                Answer::Nobody if support::busy().is_none() => return Ok(None),
                Answer::Nobody => {
                    let since = *nobody_since.get_or_insert_with(Instant::now);
                    if since.elapsed() > NOBODY {
                        return Err("it lends the machine to no other run".to_owned());
                    }
                }
            }
            if !told && begun.elapsed() > SAYS_SO {
                tell!("attune: waits, for another run joins just now");
                told = true;
            }
            sleep(AGAIN);
        }
        Ok(None)
    }

    /// From here on this run listens to processes. What is set of all policies.
    pub fn may_listen(&mut self, scheduler: &str) -> Result<Vec<Change>, Gone> {
        match self.asks(&Asked::Listen { scheduler: scheduler.to_owned() }) {
            Ok(Said::Quiet(changes)) => Ok(changes),
            _ => Err(Gone),
        }
    }

    /// The kernel has room for this run's policies, unless another run is sooner: also if the
    /// lender ends just now.
    pub fn may_attach(&mut self) {
        match self.asks(&Asked::Attach) {
            Ok(Said::Detached) => {}
            // It ends, or is gone, and what it held with it.
            Ok(_) | Err(_) => wait_until_detached(),
        }
    }

    /// The runs that have the machine now.
    pub fn tell(&self, joined: Vec<Joined>) {
        // `look` finds a lender that is gone.
        let _ = say(&self.lender, &Asked::Joined(joined), None);
    }

    /// This run has detached.
    pub fn over(self, changes: Vec<Change>) {
        // A lender that is gone needs no machine.
        let _ = say(&self.lender, &Asked::Over(changes), None);
    }

    /// The connection to the lender, for another run to follow.
    pub fn lender(&self) -> &Connection {
        &self.lender
    }

    /// Listens to the lender, without waiting.
    pub fn look(&mut self) -> News {
        let mut news = News::Nothing;
        while !self.alone && is_readable(&self.lender).unwrap_or(true) {
            match hear(&self.lender) {
                Ok(Some((Said::Follow, Some(lender)))) => {
                    self.lender = lender.into();
                    news = News::Follows;
                }
                Ok(_) => {}
                Err(_) => {
                    self.alone = true;
                    news = News::Alone;
                }
            }
        }
        news
    }

    /// Whether the lender has ended, and no other has taken its place.
    pub fn is_alone(&self) -> bool {
        self.alone
    }

    fn asks(&mut self, asked: &Asked) -> io::Result<Said> {
        say(&self.lender, asked, None)?;
        match hear(&self.lender)? {
            Some((Said::Follow, Some(lender))) => {
                self.lender = lender.into();
                Ok(Said::Follow)
            }
            Some((said, _)) => Ok(said),
            None => Err(ErrorKind::TimedOut.into()),
        }
    }
}

fn answer() -> Result<Answer, String> {
    let Ok(lender) = Connection::to(&socket(), PATIENCE) else { return Ok(Answer::Nobody) };
    match hear(&lender) {
        Ok(Some((Said::Offer(policies), members))) => {
            let members = members.map(Arc::new);
            Ok(Answer::Offered(Borrower { policies, members, lender, alone: false }))
        }
        Ok(Some((Said::Later, _))) => Ok(Answer::Later),
        Ok(Some((Said::Refused(why), _))) => Err(why),
        Ok(Some(_)) => Err("it is of another version".to_owned()),
        Ok(None) => Err(format!("it has not answered for {} s", PATIENCE.as_secs())),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(Answer::Nobody),
        Err(error) => Err(format!("it is of another version: {error}")),
    }
}
