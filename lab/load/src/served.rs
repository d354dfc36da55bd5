//! A server and its clients, programs of yours: the clients' figures.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::running::{Running, find, words};

/// Starts the server, waits until it listens at `socket`, and runs the clients. Their last line is
/// JSON with `figures` in it, as a workload of this program prints it.
pub fn run(server: &str, socket: &Path, clients: &[String]) -> Result<Value> {
    let mut server = Running::start(&words(server), None)?;
    server.wait_until("listens", || UnixStream::connect(socket).is_ok())?;
    let (program, arguments) = clients.split_first().context("clients without a name")?;
    let mut command = Command::new(find(program));
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().with_context(|| format!("cannot start {program}"))?;
    ensure!(output.status.success(), "the clients failed ({})", output.status);
    ensure!(server.is_alive(), "the server has ended: {}", server.end().trim());
    let said = String::from_utf8_lossy(&output.stdout);
    let line = said.lines().rev().find(|line| line.starts_with('{'));
    let mut said: Value = serde_json::from_str(line.context("the clients print no figures")?)?;
    Ok(said["figures"].take())
}
