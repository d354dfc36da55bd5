//! The run that has the whole machine, and lends it to one other run at a time.

use std::fs;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Instant;

use attune_kernel::{Running, support};
use attune_linux::socket::credentials;

use super::{Asked, Changes, Offer, Said, changes, socket};
use crate::args::RunArgs;
use crate::diary::DETACHED;
use crate::load::Text;
use crate::output::tell;

/// A request is no longer than that.
const LONGEST: usize = 65536;

pub struct Lender {
    offer: Offer,
    listener: UnixListener,
    borrower: Option<Connection>,
    state: State,
}

enum State {
    /// The lender's policy schedules.
    Has,
    /// A borrower has the machine, or takes it now.
    Lent,
    /// The connection was closed then; the kernel may still be detaching what the borrower held.
    Returned(Instant, Changes),
}

struct Connection {
    stream: BufReader<UnixStream>,
    process: u32,
    line: Vec<u8>,
}

/// What a look at the socket asks of the run.
pub enum Look {
    Nothing,
    /// Stop listening to processes, then call [`Lender::is_quiet`].
    Quiet {
        process: u32,
        scheduler: String,
    },
    /// The borrower is gone: attach again if that is needed, with these settings.
    TakeBack(Changes),
    /// Another scheduler has the machine now.
    Lost,
}

impl Lender {
    /// None: the run's policy cannot be lent, or nobody can be told.
    pub fn of(args: &RunArgs, text: Option<&Text>) -> Option<Lender> {
        // The programs of --implicit go on at the kernel's tracepoints, and would write into
        // records of threads that they no longer know.
        let text = text.filter(|_| args.all && !args.implicit)?;
        let absolute = |path: &PathBuf| match path.exists() {
            true => std::path::absolute(path).unwrap_or_else(|_| path.clone()),
            false => path.clone(),
        };
        let offer = Offer {
            scheduler: absolute(&args.scheduler),
            include: args.source.include.iter().map(absolute).collect(),
            aspects: args.source.aspects.iter().map(absolute).collect(),
            print: text.print,
        };
        let path = socket();
        let listener = listen(&path);
        let listener = listener.inspect_err(|error| {
            tell!("attune: no other run can join this one: {}: {error}", path.display());
        });
        Some(Lender { offer, listener: listener.ok()?, borrower: None, state: State::Has })
    }

    /// Whether the machine is another run's, or not yet this one's again.
    pub fn has_lent(&self) -> bool {
        !matches!(self.state, State::Has)
    }

    /// To be called again and again; it never waits.
    pub fn look(&mut self, running: &mut Running) -> Look {
        self.accept();
        if let State::Returned(since, settings) = &mut self.state {
            // A borrower that ended early has taken nothing.
            if running.is_attached() || support::busy().is_none() {
                let settings = std::mem::take(settings);
                self.state = State::Has;
                return Look::TakeBack(settings);
            }
            return if since.elapsed() > DETACHED { Look::Lost } else { Look::Nothing };
        }
        let lent = self.has_lent();
        let Some(borrower) = &mut self.borrower else { return Look::Nothing };
        let settings = match borrower.asked() {
            Ok(None) => return Look::Nothing,
            Ok(Some(Asked::Listen { scheduler })) if !lent => {
                let process = borrower.process;
                self.state = State::Lent;
                return Look::Quiet { process, scheduler };
            }
            Ok(Some(Asked::Attach)) if lent => {
                running.lend();
                if borrower.say(&Said::Detached).is_ok() {
                    return Look::Nothing;
                }
                Changes::new()
            }
            Ok(Some(Asked::Over(settings))) if lent => settings,
            // It is gone, or speaks another language.
            Ok(Some(_)) | Err(_) => Changes::new(),
        };
        self.returns(settings);
        Look::Nothing
    }

    /// The connection is of no use any more.
    fn returns(&mut self, settings: Changes) {
        self.borrower = None;
        if self.has_lent() {
            self.state = State::Returned(Instant::now(), settings);
        }
    }

    /// No process is listened to: the borrower may.
    pub fn is_quiet(&mut self, running: &Running) {
        let settings = changes(running.tunables().iter(), "others.");
        if let Some(borrower) = &mut self.borrower
            && borrower.say(&Said::Quiet(settings)).is_err()
        {
            self.returns(Changes::new());
        }
    }

    fn accept(&mut self) {
        // A connection that is gone already is none.
        let Ok((stream, _)) = self.listener.accept() else { return };
        let Ok(peer) = credentials(&stream) else { return };
        let process = peer.process;
        let Ok(mut connection) = Connection::new(stream, process) else { return };
        let answer = match &self.borrower {
            _ if peer.user != 0 => Said::Refused("only root may".to_owned()),
            Some(borrower) => {
                Said::Refused(format!("process {} has joined it already", borrower.process))
            }
            None if self.has_lent() => Said::Refused("another run is just leaving it".to_owned()),
            None => Said::Offer(self.offer.clone()),
        };
        let offers = matches!(answer, Said::Offer(_));
        if connection.say(&answer).is_ok() && offers {
            self.borrower = Some(connection);
        }
    }
}

/// Only root may connect, and one run has the kernel, so a socket that is there is a dead one's.
fn listen(path: &PathBuf) -> io::Result<UnixListener> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let _ = fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

impl Connection {
    fn new(stream: UnixStream, process: u32) -> io::Result<Connection> {
        stream.set_nonblocking(true)?;
        Ok(Connection { stream: BufReader::new(stream), process, line: Vec::new() })
    }

    /// None: nothing yet. An error: it is gone, or said what nobody understands.
    fn asked(&mut self) -> io::Result<Option<Asked>> {
        match self.stream.read_until(b'\n', &mut self.line) {
            Ok(_) if self.line.ends_with(b"\n") => {
                let line = std::mem::take(&mut self.line);
                Ok(Some(serde_json::from_slice(&line)?))
            }
            Ok(_) => Err(ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == ErrorKind::WouldBlock && self.line.len() < LONGEST => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The socket has room for what a lender says.
    fn say(&mut self, said: &Said) -> io::Result<()> {
        let mut line = serde_json::to_vec(said)?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_borrower_asks_is_read_without_waiting_and_nonsense_ends_it() {
        let (own, mut other) = UnixStream::pair().unwrap();
        let mut connection = Connection::new(own, 7).unwrap();
        assert!(connection.asked().unwrap().is_none());
        other.write_all(b"{\"over\":[[\"level\",").unwrap();
        assert!(connection.asked().unwrap().is_none());
        other.write_all(b"\"9\"]]}\n\"attach\"\nnonsense\n").unwrap();
        match connection.asked().unwrap() {
            Some(Asked::Over(settings)) => {
                assert_eq!(settings, [("level".to_owned(), "9".to_owned())]);
            }
            _ => panic!("it was said"),
        }
        assert!(matches!(connection.asked(), Ok(Some(Asked::Attach))));
        assert!(connection.asked().is_err());
        drop(other);
        assert!(connection.asked().is_err());
    }
}
