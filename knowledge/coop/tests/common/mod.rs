//! Cooperating programs as processes of their own: this test binary, started again with a role.

use std::io::{BufRead, BufReader, Lines};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use attune_linux::affinity::Cpus;
use attune_linux::process;
use attune_linux::signal::Signal;

/// No test takes so long; a process that has not made progress by then hangs.
const HANGS: Duration = Duration::from_secs(120);

/// A process that says lines with a `#`. Killed when dropped.
pub struct Process {
    child: Child,
    said: Receiver<String>,
}

impl Process {
    /// Starts `role` of this test binary, whose test `process` reads ROLE, on the machine's first
    /// CPU.
    pub fn start(role: &str, session: &Path) -> Process {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "process", "--nocapture"])
            .env("ROLE", role)
            .env("SESSION", session);
        let first = Cpus::of_this_thread().unwrap().iter().next().unwrap();
        // SAFETY: one system call and no memory between fork and exec.
        unsafe { command.pre_exec(move || Cpus::one(first).apply()) };
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (say, said) = mpsc::channel();
        std::thread::spawn(move || forward(lines, &say));
        Process { child, said }
    }

    /// The next thing that it says, without the `#`. Panics if it says nothing any more.
    pub fn says(&self) -> String {
        self.said.recv_timeout(HANGS).expect("the process makes no progress")
    }

    /// Says so many things more, from now on.
    pub fn progresses(&self, steps: usize) {
        while self.said.try_recv().is_ok() {}
        (0..steps).for_each(|_| drop(self.says()));
    }

    pub fn signal(&self, signal: Signal) {
        // It is our child, and has not been waited for.
        process::signal(self.child.id(), signal).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn forward(lines: Lines<BufReader<ChildStdout>>, say: &mpsc::Sender<String>) {
    for line in lines.map_while(Result::ok) {
        // The harness may have begun a line of its own.
        if let Some((_, text)) = line.split_once('#') {
            let _ = say.send(text.to_owned());
        }
    }
}
