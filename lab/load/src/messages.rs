//! Groups of senders and receivers: each sender of a group sends to each of its receivers, over
//! sockets, as in hackbench.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::{Acquire, Release};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::child::{self, Child};
use crate::clock;

/// As long as in hackbench.
const LENGTH: usize = 100;

/// Time from the start of all to the end of all.
pub fn run(groups: usize, size: usize, messages: u32) -> Result<Value> {
    ensure!(
        (1..=100).contains(&groups) && (1..=40).contains(&size) && messages > 0,
        "1 to 100 groups of 1 to 40"
    );
    let go = child::shared(1)?;
    let mut children = vec![];
    for _ in 0..groups {
        let pairs = (0..size).map(|_| UnixStream::pair()).collect::<Result<Vec<_>, _>>()?;
        for (_, receiving) in &pairs {
            let expected = size * messages as usize * LENGTH;
            children.push(Child::start(|| receive(receiving, expected))?);
        }
        for _ in 0..size {
            children.push(Child::start(|| {
                while go[0].load(Acquire) == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                send(pairs.iter().map(|(sending, _)| sending), messages)
            })?);
        }
    }
    // They have settled, waiting.
    clock::sleep_until(clock::now() + 500_000_000);
    let start = clock::now();
    go[0].store(1, Release);
    children.into_iter().try_for_each(Child::wait)?;
    let time = clock::now() - start;
    let all = groups as u64 * (size * size) as u64 * u64::from(messages);
    Ok(json!({ "messages": all, "time_ns": time, "ns_per_message": time as f64 / all as f64 }))
}

fn send<'a>(to: impl Iterator<Item = &'a UnixStream> + Clone, messages: u32) -> i32 {
    for _ in 0..messages {
        for mut socket in to.clone() {
            if socket.write_all(&[1; LENGTH]).is_err() {
                return 1;
            }
        }
    }
    0
}

fn receive(mut from: &UnixStream, expected: usize) -> i32 {
    let (mut got, mut message) = (0, [0; LENGTH]);
    while got < expected {
        match from.read(&mut message) {
            Ok(length @ 1..) => got += length,
            _ => return 1,
        }
    }
    0
}
