//! Runs `attune tune` on a running program as a user would, and reads what it says.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use attune_linux::scheduling::{Attributes, Class};
use serde_json::Value;

use super::{Running, Stage};

/// What was told last.
#[derive(Clone, Debug, Default)]
pub struct Told {
    pub frequency_hz: Option<f64>,
    /// CPU time in ms, over the run.
    pub given_ms: f64,
    pub used_ms: f64,
}

pub struct Tuning {
    running: Running,
    told: Arc<Mutex<Told>>,
}

impl Tuning {
    /// Tunes a process, and the display server of the stage with it.
    pub fn start(stage: &Stage, process: u32) -> Result<Tuning> {
        let mut command = stage.program("attune");
        command.args(["tune", "--json", "--display", "-p", &process.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut running = Running::start(stage.surround(&mut command))?;
        let output = running.child().stdout.take().context("its output")?;
        let told = Arc::new(Mutex::new(Told::default()));
        let sink = Arc::clone(&told);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let Ok(value) = serde_json::from_str::<Value>(&line) else { continue };
                let mut told = sink.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                if let Some(program) = value["status"]["programs"].as_array().and_then(|programs| {
                    programs.iter().find(|program| program["process"] == process)
                }) {
                    told.given_ms = program["given_ms"].as_f64().unwrap_or(told.given_ms);
                    told.used_ms = program["used_ms"].as_f64().unwrap_or(told.used_ms);
                    told.frequency_hz = program["frequency_hz"].as_f64().or(told.frequency_hz);
                }
            }
        });
        Ok(Tuning { running, told })
    }

    pub fn told(&self) -> Told {
        self.told.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Ends it, and with it all reservations.
    pub fn end(mut self) -> Told {
        self.running.end();
        self.told()
    }
}

/// Whether a process's first thread is under reservation (SCHED_DEADLINE).
pub fn is_reserved(process: u32) -> bool {
    Attributes::of(process).is_ok_and(|its| its.class == Class::DEADLINE)
}
