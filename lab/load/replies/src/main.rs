//! `attune-replies`: user-level threads that send replies, and the order in which a policy lets
//! them send, chunk by chunk. Says nothing of times. Each thread yields before each chunk.
//!
//! It is a program of its own, because `attune-load` speaks to kernel engines: the two engines'
//! libraries define the same C functions, those of attune.h, and a program links one of them.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::process::ExitCode;
use std::rc::Rc;

use anyhow::{Result, anyhow, ensure};
use attune_threads::{Options, ThreadId, current, imports, init, spawn, yield_now};
use clap::Parser;
use serde_json::json;

/// User-level threads with replies to send: the order in which ATTUNE_SCHED lets them send
#[derive(Parser)]
#[command(version, after_help = "Example: ATTUNE_SCHED=./fifo.so attune-replies --chunks 2,1,3")]
struct Args {
    /// Chunks of each reply, 1 to 26 of them
    #[arg(long, value_delimiter = ',', default_value = "5,1,3,2")]
    chunks: Vec<u32>,
}

fn main() -> ExitCode {
    match order(&Args::parse().chunks) {
        Ok(order) => {
            println!("{}", json!({ "order": order }));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("attune-replies: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The policy is the one that `ATTUNE_SCHED` names. Each chunk appears as its reply's letter.
fn order(replies: &[u32]) -> Result<String> {
    ensure!((1..=26).contains(&replies.len()), "1 to 26 replies");
    init(&Options { ignore_unknown_imports: true, ..Options::default() })?;
    let order = Rc::new(RefCell::new(String::new()));
    let start = |(letter, chunks): (char, u32)| -> Result<_> {
        let order = Rc::clone(&order);
        let thread = spawn(move || send(letter, chunks, &order))?;
        remaining(thread.id(), chunks)?;
        Ok(thread)
    };
    let threads: Vec<_> = ('A'..).zip(replies.iter().copied()).map(start).collect::<Result<_>>()?;
    for thread in threads {
        thread.join().map_err(|_| anyhow!("a thread panicked"))??;
    }
    let order = order.borrow().clone();
    Ok(order)
}

fn send(letter: char, chunks: u32, order: &RefCell<String>) -> io::Result<()> {
    for left in (0..chunks).rev() {
        yield_now()?;
        order.borrow_mut().push(letter);
        remaining(current()?, left)?;
    }
    Ok(())
}

/// Tells a policy that wants to know how much the thread still has to send.
fn remaining(thread: ThreadId, chunks: u32) -> io::Result<()> {
    match imports::set_thread_int(thread, "remaining", chunks.into()) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
