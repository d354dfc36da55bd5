//! Runs a program while an experiment measures something, and ends it when its value is dropped.

use std::ffi::OsStr;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use attune_linux::{process, signal};

pub struct Running(Child);

impl Running {
    /// Starts it without input and output.
    pub fn quietly(command: &mut Command) -> Result<Running> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Running::start(command)
    }

    /// Starts it with the input and output that the command says.
    pub fn start(command: &mut Command) -> Result<Running> {
        let name = command.get_program().to_owned();
        let child = command
            .spawn()
            .with_context(|| format!("starting {}", OsStr::to_string_lossy(&name)))?;
        Ok(Running(child))
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    pub fn is_alive(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }

    /// Asks it to end, and waits for at most two seconds before it is killed.
    pub fn end(&mut self) {
        if self.is_alive() {
            // It was not waited for, so the number is its own; it may end by itself just now.
            let _ = process::signal(self.0.id(), signal::TERMINATE);
        }
        for _ in 0..100 {
            if !self.is_alive() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
        // It has ended, or does now.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
