//! Descriptors as events, on the real clock, without another program to cooperate with.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use attune_coop::{EventLoop, Readiness, Wanted, When};

type Said = Rc<RefCell<Vec<String>>>;

fn event_loop() -> (EventLoop, Said) {
    (EventLoop::new(Wanted::None, 0).unwrap(), Said::default())
}

/// Says what it reads; ends with its descriptor.
fn reader(
    events: &mut EventLoop,
    mut stream: UnixStream,
    importance: i64,
    name: &'static str,
    said: &Said,
) {
    let said = said.clone();
    let fd = stream.as_raw_fd();
    let callback = move |events: &mut EventLoop, event, readiness: Readiness| {
        assert!(readiness.readable || readiness.error);
        let mut byte = [0];
        match stream.read(&mut byte).unwrap() {
            0 => events.remove(event),
            _ => said.borrow_mut().push(format!("{name} {}", char::from(byte[0]))),
        }
    };
    events.descriptor(fd, Readiness::READABLE, importance, name, callback).unwrap();
}

#[test]
fn readiness_is_an_event_with_an_importance() {
    let (mut events, said) = event_loop();
    for (importance, name) in [(7, "less"), (2, "more")] {
        let (mut there, here) = UnixStream::pair().unwrap();
        there.write_all(b"xy").unwrap();
        reader(&mut events, here, importance, name, &said);
    }
    let between = said.clone();
    let event =
        events.event("between", move |_, _| between.borrow_mut().push("between".to_owned()));
    events.submit(event, When::best_effort(5));
    let due = said.clone();
    let event = events.event("due", move |_, _| due.borrow_mut().push("due".to_owned()));
    events.submit(event, When::At(1));
    events.run().unwrap();
    assert_eq!(*said.borrow(), ["due", "more x", "more y", "between", "less x", "less y"]);
}

#[test]
fn a_sleeping_loop_wakes_up_for_descriptors_and_timers() {
    let (mut events, said) = event_loop();
    let (mut there, here) = UnixStream::pair().unwrap();
    reader(&mut events, here, 0, "pipe", &said);
    let write = events.event("write", move |events, write| {
        if there.write_all(b"a").is_ok() {
            events.remove(write);
        }
    });
    let soon = events.now() + 3_000_000;
    events.submit(write, When::At(soon));
    events.run().unwrap();
    assert_eq!(*said.borrow(), ["pipe a"]);
    assert!(events.transport().statistics().sleeps >= 1);
}

#[test]
fn a_descriptor_closed_too_early_is_named() {
    let (mut events, _) = event_loop();
    let (mut there, here) = UnixStream::pair().unwrap();
    there.write_all(b"a").unwrap();
    let fd = here.as_raw_fd();
    let mut here = Some(here);
    events
        .descriptor(fd, Readiness::READABLE, 0, "socket", move |_, _, _| drop(here.take()))
        .unwrap();
    let message = events.run().unwrap_err().to_string();
    assert!(message.contains("of `socket`") && message.contains("before closing it"), "{message}");
}

#[test]
fn plain_files_are_refused() {
    let (mut events, _) = event_loop();
    let file = std::fs::File::open(env!("CARGO_MANIFEST_DIR").to_owned() + "/Cargo.toml").unwrap();
    let refused = events.descriptor(file.as_raw_fd(), Readiness::READABLE, 0, "file", |_, _, _| ());
    assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EPERM));
    events.run().unwrap();
}
