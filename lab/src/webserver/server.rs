//! Starts the servers that the experiment compares, each a process pinned to the server's core.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use attune_linux::child::{end_with_parent, pin};
use attune_linux::time::{Time, process_cpu_time};
use attune_linux::{process, signal};

use super::nginx::{self, Role};

/// How long a server may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that runs. Dropping it ends it.
pub struct Server {
    pub address: SocketAddrV4,
    /// The command, for the record.
    pub command: String,
    child: Child,
}

/// Where the example server has its replies from.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// The files below a folder.
    Files(&'a Path),
    /// Another server, whose replies it keeps.
    Upstream(SocketAddrV4),
}

/// How the example server is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Settings {
    pub handlers: usize,
    pub chunk: usize,
}

impl Settings {
    pub fn words(self) -> String {
        format!("{} handlers, chunks of {} kB", self.handlers, self.chunk >> 10)
    }
}

impl Server {
    /// Starts examples/webserver with a compiled scheduler (None: the library's built-in one).
    pub fn start(
        program: &Path,
        scheduler: Option<&Path>,
        source: Source,
        settings: &Settings,
        extra: &[&str],
        cpu: u32,
    ) -> Result<Server> {
        let mut command = Command::new(program);
        command.args(["--port", "0", "--json"]);
        match source {
            Source::Files(site) => command.arg("--files").arg(site),
            Source::Upstream(address) => command.args(["--upstream", &address.to_string()]),
        };
        command.args([
            "--handlers",
            &settings.handlers.to_string(),
            "--chunk",
            &settings.chunk.to_string(),
        ]);
        command.args(extra);
        command.env_remove("ATTUNE_SCHED");
        if let Some(scheduler) = scheduler {
            command.env("ATTUNE_SCHED", scheduler);
        }
        let words = describe(&command);
        let words = scheduler
            .map_or(words.clone(), |path| format!("ATTUNE_SCHED={} {words}", path.display()));
        let mut child = pinned(command.stdout(Stdio::piped()), cpu)
            .spawn()
            .with_context(|| format!("starting {words}"))?;
        match listening_port(&mut child) {
            Ok(port) => Ok(Server {
                address: SocketAddrV4::new(Ipv4Addr::LOCALHOST, port),
                command: words,
                child,
            }),
            Err(error) => {
                end(&mut child);
                Err(error.context(words))
            }
        }
    }

    /// Starts nginx with one worker; what it writes goes to `scratch`.
    pub fn start_nginx(role: &Role, scratch: &Path, cpu: u32) -> Result<Server> {
        let address = free_address()?;
        let file = scratch.join("nginx.conf");
        fs::create_dir_all(scratch)?;
        let scratch = fs::canonicalize(scratch)?;
        fs::write(&file, nginx::configuration(role, address, &scratch)?)?;
        let mut command = Command::new(nginx::program().context("nginx is not installed")?);
        command.arg("-c").arg(fs::canonicalize(&file)?).arg("-e").arg(scratch.join("nginx.log"));
        let words = describe(&command);
        let child =
            pinned(&mut command, cpu).spawn().with_context(|| format!("starting {words}"))?;
        let mut server = Server { address, command: words, child };
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(address).is_err() {
            if server.child.try_wait()?.is_some() || Instant::now() > deadline {
                let log = fs::read_to_string(scratch.join("nginx.log")).unwrap_or_default();
                bail!("{} does not listen: {log}", server.command);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    /// CPU time that it has used.
    pub fn cpu_time(&self) -> Result<Time> {
        Ok(process_cpu_time(self.child.id())?)
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as its user would (SIGTERM) and returns the last line that it printed, and its exit
    /// status.
    pub fn stop(mut self) -> Result<(String, Option<i32>)> {
        process::signal(self.child.id(), signal::TERMINATE)?;
        let status = wait(&mut self.child, PATIENCE)?;
        let mut said = String::new();
        if let Some(mut stdout) = self.child.stdout.take() {
            stdout.read_to_string(&mut said)?;
        }
        Ok((said.lines().last().unwrap_or_default().to_owned(), status))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn free_address() -> Result<SocketAddrV4> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(SocketAddrV4::new(Ipv4Addr::LOCALHOST, listener.local_addr()?.port()))
}

/// "listening on 127.0.0.1:8080, ..."
fn listening_port(child: &mut Child) -> Result<u16> {
    let stdout = child.stdout.as_mut().context("its output")?;
    let mut line = Vec::new();
    // Byte by byte, so that nothing of what follows is lost in a buffer; the line is short.
    let mut reader = BufReader::with_capacity(1, stdout);
    reader.read_until(b'\n', &mut line)?;
    let line = String::from_utf8_lossy(&line);
    let address = line.strip_prefix("listening on ").and_then(|rest| rest.split(',').next());
    let port = address.and_then(|address| address.rsplit(':').next()?.parse().ok());
    port.with_context(|| format!("it did not say where it listens but: {line:?}"))
}

fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// On one CPU; it ends with the lab, however that ends.
fn pinned(command: &mut Command, cpu: u32) -> &mut Command {
    end_with_parent(pin(command, cpu))
}

fn wait(child: &mut Child, patience: Duration) -> Result<Option<i32>> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.code());
        }
        if Instant::now() > deadline {
            bail!("the server did not end within {patience:?} of being asked to");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn end(child: &mut Child) {
    if !matches!(child.try_wait(), Ok(Some(_))) {
        let _ = child.kill();
        let _ = child.wait();
    }
}
