//! Very many processes that supply values, and hints for very many: what each costs. Times in
//! nanoseconds, memory in bytes.
//!
//! The processes are there before they supply anything, so that the difference is what their values
//! take. Then one process has as many threads, and the program `attune`, beside this one, gives
//! hints: a person's way, with its start.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;
use std::thread::Builder;

use anyhow::{Context, Result, bail, ensure};
use attune_linux::procfs;
use attune_linux::time::{MILLISECOND, SECOND, Time};
use serde_json::{Value, json};

use crate::child::{self, Child};
use crate::clock;

/// What the scheduler imports, and a value that changes nothing: `coop`'s group, 0 for none.
const IMPORT: &str = "group";
const NONE: i64 = 0;
/// Processes that connect at a time: a person's programs do not start all at once.
const AT_A_TIME: u64 = 64;
/// The longest wait for any of it.
const PATIENCE: Time = 120 * SECOND;
const LOOK: Time = MILLISECOND;
const STACK: usize = 16 << 10;

pub fn run(count: u64) -> Result<Value> {
    ensure!(count > 0, "at least one process");
    let numbers = child::shared(3)?;
    let [gate, connected, threads] = [&numbers[0], &numbers[1], &numbers[2]];
    let client = |number| Child::start(move || supply(number, gate, connected));
    let clients = (0..count).map(client).collect::<Result<Vec<_>, _>>()?;
    let (before, began) = (Memory::now()?, clock::now());
    for next in (AT_A_TIME..count + AT_A_TIME).step_by(AT_A_TIME as usize) {
        gate.store(next.min(count), SeqCst);
        let all_hear = || connected.load(SeqCst) >= next.min(count);
        clock::wait_until(all_hear, LOOK, PATIENCE)
            .context("the scheduler does not hear them all")?;
    }
    let (registered, after) = (clock::now() - began, Memory::now()?);

    let crowd = Child::start(move || crowd(count, threads))?;
    clock::wait_until(|| threads.load(SeqCst) >= count, LOOK, PATIENCE)
        .context("there is no room for so many threads")?;
    let members = procfs::threads(crowd.pid());
    let one = hint(&[crowd.pid().to_string(), format!("{IMPORT}={NONE}")], "")?;
    let each: String = members.iter().map(|it| line(&format!("{}/{it}", crowd.pid()))).collect();
    let each_thread = hint(&["--from".into(), "-".into()], &each)?;
    let each: String = clients.iter().map(|it| line(&it.pid().to_string())).collect();
    let each_process = hint(&["--from".into(), "-".into()], &each)?;
    Ok(json!({
        "clients": {
            "count": count, "register_ns": registered,
            "pages_bytes": after.shared - before.shared,
            "all_bytes": before.available - after.available,
        },
        "hint_ns": { "crowd": one, "each_thread": each_thread, "each_process": each_process },
    }))
}

/// The life of a process: it supplies a value when it is its turn, and stays.
fn supply(number: u64, gate: &AtomicU64, connected: &AtomicU64) -> i32 {
    let turn = || gate.load(SeqCst) > number;
    // Rarely: ten thousand look.
    while !turn() {
        clock::sleep_until(clock::now() + 100 * MILLISECOND);
    }
    let Ok(value) = attune_client::thread_import(IMPORT) else { return 1 };
    value.set(NONE);
    while attune_client::scheduler().is_none() {
        clock::sleep_until(clock::now() + 100 * MILLISECOND);
    }
    connected.fetch_add(1, SeqCst);
    clock::sleep_for_ever()
}

/// A process of so many threads.
fn crowd(count: u64, threads: &'static AtomicU64) -> i32 {
    for _ in 1..count {
        let life = || {
            threads.fetch_add(1, SeqCst);
            clock::sleep_for_ever()
        };
        if Builder::new().stack_size(STACK).spawn(life).is_err() {
            return 1;
        }
    }
    threads.fetch_add(1, SeqCst);
    clock::sleep_for_ever()
}

fn line(whom: &str) -> String {
    format!("{whom} {IMPORT}={NONE}\n")
}

/// How long `attune hint` takes, which reads that.
fn hint(words: &[String], input: &str) -> Result<Time> {
    let program = std::env::current_exe()?.with_file_name("attune");
    let began = clock::now();
    let mut command = Command::new(program);
    let child = command.arg("hint").args(words).stdin(Stdio::piped()).spawn();
    let mut child = child.context("cannot run attune, which belongs beside this program")?;
    if let Some(mut pipe) = child.stdin.take() {
        pipe.write_all(input.as_bytes())?;
    }
    match child.wait()?.success() {
        true => Ok(clock::now() - began),
        false => bail!("the hints are refused"),
    }
}

/// What the machine's memory is used for, in bytes.
struct Memory {
    shared: i64,
    available: i64,
}

impl Memory {
    fn now() -> Result<Memory> {
        let text = fs::read_to_string("/proc/meminfo")?;
        let of = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            let number = line.and_then(|it| it.split_whitespace().next()?.parse::<i64>().ok());
            number.map(|kilobytes| kilobytes << 10).with_context(|| format!("no {name}"))
        };
        Ok(Memory { shared: of("Shmem")?, available: of("MemAvailable")? })
    }
}
