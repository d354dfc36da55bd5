//! How long a program takes to register beside programs of other users that flood the values'
//! socket, and how soon root is answered then. Needs root, which starts programs of all users.
//!
//! Two scenes: in one of them the others only compute. In the other each user holds as many idle
//! connections as it may, and may have processes with values in as many pages; its other processes
//! connect all the time, where all users' connections wait for each other. Half of those wait for
//! their answers. Times in nanoseconds.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use attune_linux::process;
use attune_linux::time::{MILLISECOND, SECOND, Time};
use attune_values::socket::{Connection, Received};
use attune_values::wire::{self, Reply, Request};
use serde_json::{Value, json};

use crate::child::{self, Child};
use crate::{clock, numbers};

/// The user of the programs that register: the scheduler knows that user from before.
const GUEST: u32 = 65_533;
/// The first of users that it does not know, one for each program, and the first of the others.
const NEW: u32 = 61_001;
const STRANGER: u32 = 60_001;
/// What programs supply, and a value that changes nothing: `coop`'s group, 0 for none.
const IMPORT: &str = "group";
const NONE: i64 = 0;
/// What root sets, to what it is.
const TUNABLE: [&str; 2] = ["coop_slack", "1ms"];
/// More than one user may have.
const CONNECTIONS: usize = 256;
/// Programs that register in a scene, one after the other, and how often root asks.
const TIMES: usize = 20;
const PAUSE: Time = 5 * MILLISECOND;
/// For a flood to fill the socket's queue, and for its users to take all that they may.
const SETTLES: Time = SECOND;
/// What has not happened by then counts as so long.
const PATIENCE: Time = 5 * SECOND;
const LOOK: Time = MILLISECOND;
/// So many processes at once wait to be heard. More would only try again and again.
const AT_ONCE: u64 = 256;
/// For very many processes to register.
const LONG_PATIENCE: Time = 300 * SECOND;

/// What a process of a user does, by its number.
type Job = fn(usize);

/// So many users with so many processes each that flood, and so many more that have values.
/// `reversed`: the flood comes first.
pub fn run(users: u32, processes: usize, clients: u64, reversed: bool) -> Result<Value> {
    ensure!(process::effective_user() == 0, "only root can start programs of other users");
    let scenes: [(&str, Job); 2] = [("hogs", |_| clock::spin_for_ever()), ("flood", flood)];
    let mut figures = json!({ "users": users, "processes": processes, "clients": clients });
    let mut new = NEW..;
    time_to_register(GUEST)?;
    for place in if reversed { [1, 0] } else { [0, 1] } {
        let (name, job) = scenes[place];
        let kept = if name == "flood" { clients } else { 0 };
        figures[name] = scene(users, processes, kept, job, &mut new).context(name)?;
    }
    let median = |scene: &str| figures[scene]["register_ns"]["p50"].as_f64().unwrap_or(f64::NAN);
    figures["later_ns"] = json!(median("flood") - median("hogs"));
    Ok(figures)
}

fn scene(
    users: u32,
    processes: usize,
    clients: u64,
    job: Job,
    new: &mut impl Iterator<Item = u32>,
) -> Result<Value> {
    let numbers = child::shared(2)?;
    let [heard, refused] = [&numbers[0], &numbers[1]];
    let strangers = || STRANGER..STRANGER + users;
    let mut others = Vec::new();
    let heard_within = |started: usize, but: u64| {
        let answered = || heard.load(SeqCst) + refused.load(SeqCst) + but >= started as u64;
        clock::wait_until(answered, LOOK, 2 * LONG_PATIENCE).context("values are not heard")
    };
    for _ in 0..clients {
        for user in strangers() {
            heard_within(others.len(), AT_ONCE)?;
            others.push(Child::of_user(user, || keep_a_page(heard, refused))?);
        }
    }
    heard_within(others.len(), 0)?;
    for user in strangers() {
        for number in 0..processes {
            others.push(Child::of_user(user, || job(number))?);
        }
    }
    clock::sleep_until(clock::now() + SETTLES);

    // Where every place is taken, one that is not heard says enough.
    let times = if clients > 0 { 1 } else { TIMES };
    let known = (0..times).map(|_| time_to_register(GUEST));
    let mut known = known.collect::<Result<Vec<Time>>>()?;
    let mut first = new.take(times).map(time_to_register).collect::<Result<Vec<Time>>>()?;
    let [name, value] = TUNABLE.map(str::to_owned);
    let set = Request::Set { settings: vec![(name, value)] };
    let (set_ns, set_refused) = asked_by_root(&set)?;
    ensure!(set_refused == 0, "root may not set {}", TUNABLE[0]);
    let (top_ns, top_refused) = asked_by_root(&Request::Snapshot)?;
    Ok(json!({
        "register_ns": numbers::quantiles(&mut known),
        "first_ns": numbers::quantiles(&mut first),
        "set_ns": set_ns,
        "top_ns": top_ns,
        "top_refused": top_refused,
        "heard": heard.load(Relaxed),
        "refused": refused.load(Relaxed),
    }))
}

fn time_to_register(user: u32) -> Result<Time> {
    let time = &child::shared(1)?[0];
    Child::of_user(user, || time.store(register(), Relaxed))?.wait()?;
    clock::sleep_until(clock::now() + PAUSE);
    Ok(time.load(Relaxed))
}

/// How long it takes until the scheduler hears this program.
fn register() -> Time {
    let began = clock::now();
    let passed = || clock::now() - began;
    let Ok(value) = attune_client::thread_import(IMPORT) else { return PATIENCE };
    value.set(NONE);
    while attune_client::scheduler().is_none() && passed() < PATIENCE {
        clock::sleep_until(clock::now() + LOOK);
    }
    passed()
}

/// How long such a question of root's takes, with its connection, and how often it is refused.
fn asked_by_root(request: &Request) -> Result<(Value, u32)> {
    let mut refused = 0;
    let ask = |_| {
        let began = clock::now();
        let connection = Connection::to(&wire::path(), Duration::from_nanos(PATIENCE))?;
        connection.send(request, None)?;
        match connection.receive()? {
            Received::Message(Reply::Done | Reply::Enclosed, _) => {}
            Received::Message(Reply::Refused { .. }, _) => refused += 1,
            _ => bail!("root is not answered"),
        }
        let time = clock::now() - began;
        clock::sleep_until(clock::now() + PAUSE);
        Ok(time)
    };
    let mut times = (0..TIMES).map(ask).collect::<Result<Vec<Time>>>()?;
    Ok((numbers::quantiles(&mut times), refused))
}

/// A process that has values and stays. The client library tries again until it is heard.
fn keep_a_page(heard: &AtomicU64, refused: &AtomicU64) {
    let has_one = attune_client::thread_import(IMPORT).is_ok_and(|value| {
        value.set(NONE);
        let has_one = || attune_client::scheduler().is_some();
        clock::wait_until(has_one, SECOND, LONG_PATIENCE).is_ok()
    });
    if has_one { heard } else { refused }.fetch_add(1, SeqCst);
    clock::sleep_for_ever();
}

fn flood(number: usize) {
    let patience = Duration::from_nanos(PATIENCE);
    let connect = || Connection::at(&wire::path(), patience);
    if number == 0 {
        let _held: Vec<_> = (0..CONNECTIONS).map(|_| connect()).collect();
        clock::sleep_for_ever();
    }
    loop {
        let Ok(connection) = connect() else { continue };
        let asked = connection.send(&Request::Hello { version: wire::VERSION }, None);
        if asked.is_ok() && number.is_multiple_of(2) {
            let _ = connection.receive::<Reply>();
        }
    }
}
