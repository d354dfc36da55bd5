//! Transport `kernel` beside a scheduler that this test plays: a poll's offer, its answer, and
//! polls that no scheduler answers. (`cargo test -p attune --test coop_kernel` has the true one, in
//! a virtual machine.)

use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use attune_broker::{Broker, Memory};
use attune_coop::transport::poll_and_serve;
use attune_coop::{Answer, Clock, Monotonic, NEVER, NOTHING, Offer, Time, Transport, Wanted, open};
use attune_values::names::{GROUP, IMPORTANCE, NEXT_RELEASE, OTHERS, POLLS, UNTIL};

const IMPORTS: [(&str, i64); 6] =
    [(GROUP, 0), (POLLS, 0), (NEXT_RELEASE, 0), (IMPORTANCE, 1), (UNTIL, 0), (OTHERS, 2)];

fn engine(imports: &[(&str, i64)], socket: &Path) -> (Memory, Broker) {
    let memory = Memory::new(imports, 16);
    let broker = Broker::start(socket, memory.clone()).unwrap();
    (memory, broker)
}

fn ids() -> (i32, i32) {
    (std::process::id() as i32, attune_linux::process::this_thread() as i32)
}

/// No scheduler answers, and it asks again soon.
#[track_caller]
fn is_alone(transport: &mut dyn Transport, offer: &Offer) -> io::Result<()> {
    let before = Monotonic.now();
    let answer = transport.poll(offer, &mut [])?;
    let soon = before..Monotonic.now() + 1_000_000_000;
    assert!(answer.turn && answer.others == NOTHING && soon.contains(&answer.until), "{answer:?}");
    Ok(())
}

/// Plays the scheduler beside a poll that sleeps and says `timer`: answers it once, then does as
/// `answered` says.
fn answering<T>(
    memory: &Memory,
    timer: Time,
    answered: impl FnOnce() + Send,
    poll: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    let (me, thread) = ids();
    thread::scope(|scope| {
        scope.spawn(move || {
            let said = |name| memory.value(me, thread, name);
            let gone = timer + 50_000_000;
            while said(NEXT_RELEASE) != Some(timer as i64) && Monotonic.now() < gone {
                thread::sleep(Duration::from_millis(1));
            }
            if said(POLLS) != Some(0)
                && said(IMPORTANCE) == Some(NOTHING)
                && said("group") == Some(3)
            {
                memory.assign(me, thread, "others", 9);
                memory.assign(me, thread, "until", timer as i64 + 5);
            }
            answered();
        });
        poll()
    })
}

fn sleeping(timer: Time) -> Offer {
    Offer { group: 3, timer, best_effort: NOTHING }
}

/// Sleeps for a while in a poll, in which the scheduler finds what is said and answers; again until
/// it is answered.
#[track_caller]
fn is_answered(transport: &mut dyn Transport, memory: &Memory) {
    let (me, thread) = ids();
    let patience = Instant::now() + Duration::from_secs(90);
    loop {
        let timer = Monotonic.now() + 100_000_000;
        let answer =
            answering(memory, timer, || (), || transport.poll(&sleeping(timer), &mut [])).unwrap();
        assert!(Monotonic.now() >= timer, "it sleeps until its timer");
        if answer == (Answer { turn: true, until: timer + 5, others: 9 }) {
            let said = || memory.value(me, thread, NEXT_RELEASE);
            assert_eq!(said(), Some(timer as i64), "it is due until its service begins");
            transport.tell_timer(timer + 7);
            assert_eq!(said(), Some(timer as i64 + 7));
            return;
        }
        assert!(answer.until != timer + 5 && answer.others == NOTHING, "{answer:?}");
        assert!(Instant::now() < patience, "not answered");
    }
}

/// A loop that is not ours serves what is due when its poll returns: the scheduler keeps a release
/// that has not come, and no other.
fn is_served_at_once(transport: &mut dyn Transport, memory: &Memory) -> io::Result<()> {
    let (me, thread) = ids();
    let (reader, mut writer) = io::pipe()?;
    let mut descriptors = [attune_linux::poll::readable(reader.as_raw_fd())];
    let said = || memory.value(me, thread, NEXT_RELEASE);

    let later = Monotonic.now() + 60_000_000_000;
    let poll = || poll_and_serve(transport, &sleeping(later), &mut descriptors);
    let answer = answering(memory, later, || writer.write_all(b"!").unwrap(), poll)?;
    assert_eq!((answer.until, said()), (later + 5, Some(later as i64)));

    let soon = Monotonic.now() + 3_000_000_000;
    let answer =
        answering(memory, soon, || (), || poll_and_serve(transport, &sleeping(soon), &mut []))?;
    assert_eq!((answer.until, said()), (soon + 5, Some(0)), "no release is left");
    Ok(())
}

/// A process with very many threads: each finds room for its values.
fn has_room_for(threads: usize) {
    let (tell, joined) = mpsc::channel();
    let member = || {
        let (leave, asked) = mpsc::channel::<()>();
        let tell = tell.clone();
        let member = thread::Builder::new().stack_size(128 << 10).spawn(move || {
            let transport = open(Wanted::Kernel);
            let _ = tell.send(transport.as_ref().err().map(|error| error.to_string()));
            let _ = asked.recv();
        });
        (leave, member.unwrap())
    };
    let members: Vec<_> = (0..threads).map(|_| member()).collect();
    (0..threads).for_each(|_| assert_eq!(joined.recv().unwrap(), None));
    for (leave, member) in members {
        drop(leave);
        member.join().unwrap();
    }
}

#[test]
fn a_program_finds_its_scheduler_and_outlives_it() -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("values");
    // SAFETY: the only test of this program, and no other thread runs yet.
    unsafe {
        std::env::set_var("ATTUNE_VALUES", &socket);
        std::env::remove_var("ATTUNE_COOP");
    }
    assert_eq!(open(Wanted::Auto)?.name(), "none", "no scheduler");
    {
        let (_memory, _broker) = engine(&[("urgent", 0)], &socket);
        assert_eq!(open(Wanted::Auto)?.name(), "none", "one that wants other things");
    }
    let (memory, broker) = engine(&IMPORTS, &socket);
    let mut transport = open(Wanted::Auto)?;
    assert_eq!(transport.name(), "kernel");

    let (me, thread) = ids();
    let work = Offer { group: 3, timer: NEVER, best_effort: 7 };
    is_alone(&mut *transport, &work)?;
    assert_eq!(memory.value(me, thread, POLLS), Some(0), "without an answer it does not cooperate");
    is_answered(&mut *transport, &memory);
    is_served_at_once(&mut *transport, &memory)?;
    is_answered(&mut *transport, &memory);
    memory.assign(me, thread, "until", 77);
    assert_eq!(transport.until(), 77, "it may fall while the program runs");
    has_room_for(1000);
    is_answered(&mut *transport, &memory);

    drop((memory, broker));
    is_alone(&mut *transport, &work)?;
    let (memory, _broker) = engine(&IMPORTS, &socket);
    is_answered(&mut *transport, &memory);
    drop(transport);
    assert_eq!(memory.value(me, thread, POLLS), Some(0));
    Ok(())
}
