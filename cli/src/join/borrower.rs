//! The run that joins: it borrows the machine for as long as its command lasts.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use attune_kernel::Running;

use super::{Asked, Changes, Offer, Said, changes, socket};
use crate::diary::wait_until_detached;
use crate::failure::Failure;

/// A lender looks at its socket every 50 ms, but may stop to listen and detach in between.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Borrower {
    pub offer: Offer,
    stream: BufReader<UnixStream>,
    /// The lender has ended, so this run has the machine for itself.
    alone: bool,
}

impl Borrower {
    /// Asks the run that has the machine. An error says why it does not lend it.
    pub fn ask() -> Result<Borrower, String> {
        let path = socket();
        let stream = UnixStream::connect(&path);
        let stream = stream.map_err(|_| "it lends the machine to no other run".to_owned())?;
        let connect = || -> io::Result<(BufReader<UnixStream>, Said)> {
            stream.set_read_timeout(Some(PATIENCE))?;
            let mut stream = BufReader::new(stream);
            let said = hear(&mut stream)?;
            Ok((stream, said))
        };
        match connect().map_err(|error| format!("{}: {error}", path.display()))? {
            (stream, Said::Offer(offer)) => Ok(Borrower { offer, stream, alone: false }),
            (_, Said::Refused(why)) => Err(why),
            (..) => Err("it is of another version".to_owned()),
        }
    }

    /// From here on this run listens to processes. What is set of the lender's policy.
    pub fn may_listen(&mut self, scheduler: &str) -> Result<Changes, Failure> {
        match self.asks(&Asked::Listen { scheduler: scheduler.to_owned() })? {
            Said::Quiet(settings) => Ok(settings),
            _ => Err(gone("it is of another version")),
        }
    }

    /// The kernel has room for this run's policies, also if the lender ends just now.
    pub fn may_attach(&mut self) -> Result<(), Failure> {
        match self.asks(&Asked::Attach) {
            Ok(Said::Detached) => Ok(()),
            Ok(_) => Err(gone("it is of another version")),
            Err(_) => {
                wait_until_detached();
                Ok(())
            }
        }
    }

    /// What is set of the lender's policy now; the last thing to ask before this run detaches.
    pub fn settings(running: &Running) -> Changes {
        let all = running.tunables();
        changes(all.iter().filter(|it| it.role.as_deref() == Some("others")), "")
    }

    /// This run has detached.
    pub fn over(mut self, settings: Changes) {
        // A lender that is gone needs no machine.
        let _ = say(self.stream.get_mut(), &Asked::Over(settings));
    }

    /// Whether the lender has ended, said once.
    pub fn is_left_alone(&mut self) -> bool {
        if self.alone {
            return false;
        }
        let stream = self.stream.get_mut();
        let _ = stream.set_nonblocking(true);
        self.alone = match stream.read(&mut [0]) {
            Ok(0) => true,
            Ok(_) => false,
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        };
        let _ = stream.set_nonblocking(false);
        self.alone
    }

    fn asks(&mut self, asked: &Asked) -> Result<Said, Failure> {
        let said = say(self.stream.get_mut(), asked).and_then(|()| hear(&mut self.stream));
        said.map_err(|error| gone(&error.to_string()))
    }
}

fn gone(why: &str) -> Failure {
    Failure::wrong(format!("the run that was to lend the machine has not done so: {why}"))
}

fn say(stream: &mut UnixStream, asked: &Asked) -> io::Result<()> {
    let mut line = serde_json::to_vec(asked)?;
    line.push(b'\n');
    stream.write_all(&line)
}

fn hear(stream: &mut BufReader<UnixStream>) -> io::Result<Said> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(io::Error::new(ErrorKind::UnexpectedEof, "it has ended"));
    }
    Ok(serde_json::from_str(&line)?)
}
