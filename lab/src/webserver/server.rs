//! Starts the servers that the experiment compares, each a process pinned to the server's core.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use attune_linux::child::{end_with_parent, pin};
use attune_linux::time::{Time, process_cpu_time};
use attune_linux::{process, signal};

use crate::programs;

/// How long a server may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that runs. Dropping it ends it.
pub struct Server {
    pub address: SocketAddrV4,
    /// The command, for the record.
    pub command: String,
    child: Child,
}

/// How the example server is started.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Settings {
    pub handlers: usize,
    pub chunk: usize,
}

impl Server {
    /// Starts examples/webserver with a compiled scheduler (None: the library's built-in one) on
    /// the files of `site`.
    pub fn start(
        program: &Path,
        scheduler: Option<&Path>,
        site: &Path,
        settings: &Settings,
        extra: &[&str],
        cpu: u32,
    ) -> Result<Server> {
        let mut command = Command::new(program);
        command.args(["--port", "0", "--json", "--files"]).arg(site);
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

    /// Starts nginx with one worker on the same files; what it writes goes to `scratch`.
    pub fn start_nginx(site: &Path, scratch: &Path, cpu: u32) -> Result<Server> {
        let address = free_address()?;
        let configuration = scratch.join("nginx.conf");
        let site = fs::canonicalize(site)?;
        fs::create_dir_all(scratch)?;
        let scratch = fs::canonicalize(scratch)?;
        fs::write(&configuration, nginx_configuration(address, &site, &scratch))?;
        let mut command = Command::new(nginx_program().context("nginx is not installed")?);
        command
            .arg("-c")
            .arg(fs::canonicalize(&configuration)?)
            .arg("-e")
            .arg(scratch.join("nginx.log"));
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

/// Where nginx is, if it is installed; Debian keeps it out of users' search path.
pub fn nginx_program() -> Option<PathBuf> {
    let elsewhere = ["/usr/sbin/nginx", "/usr/local/sbin/nginx"].map(PathBuf::from);
    programs::find("nginx").or_else(|| elsewhere.into_iter().find(|program| program.is_file()))
}

fn nginx_configuration(address: SocketAddrV4, site: &Path, scratch: &Path) -> String {
    let scratch = scratch.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|kind| format!("    {kind}_temp_path \"{scratch}/{kind}\";\n"))
        .collect();
    // As root its worker would become another user, which may not be able to read the files.
    let user = if process::effective_user() == 0 { "user root;\n" } else { "" };
    format!(
        "{user}daemon off;\nmaster_process off;\nworker_processes 1;\npid \"{scratch}/nginx.pid\";\
            \nerror_log \"{scratch}/nginx.log\" error;\nevents {{ worker_connections 16384; }}\n\
            http {{\n{temporary}    access_log off;\n    sendfile on;\n    tcp_nodelay on;\n    \
            open_file_cache max=1000 inactive=1h;\n    open_file_cache_valid 1h;\n    \
            keepalive_requests 1000000;\n    default_type application/octet-stream;\n    server {{ \
            listen {address} backlog=4096; root \"{}\"; }}\n}}\n",
        site.display()
    )
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
