//! The example web server for microcontrollers: with clients inside, on the emulated board and as a
//! program, and with clients of this machine through the board's network card.
//!
//! `attune lab run embedded-web` compares its policies; here the example works.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use attune_embedded::firmware::{Board, Serving, available};
use attune_lab::embedded::web::{Part, Scheduler, build, can_run, parts};

/// Longer than anything takes; a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(150);

/// Whether this machine has what the tests need; in CI it must.
fn runs() -> bool {
    let missing = available(Board::Host).map_err(Into::into).and_then(|()| can_run());
    if let Err(missing) = &missing {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{missing}");
        eprintln!("not run: {missing}");
    }
    missing.is_ok()
}

/// The parts of a run with up to 5 clients and 4 handlers.
fn measured(board: Board, scheduler: Scheduler, folder: &Path) -> Vec<Part> {
    let flags = ["-DCLIENTS=5", "-DREQUESTS=30", "-DLATENCIES=0,2000"];
    let image = build(board, scheduler, &flags, folder).expect("it builds");
    let first = parts("tested", 4, &image).expect("it runs to its end");
    let second = parts("tested", 4, &image).expect("it runs to its end");
    assert_eq!(first, second, "a run repeats");
    let clients: Vec<u32> = first.iter().map(|part| part.clients).collect();
    assert_eq!(clients, [1, 2, 3, 4, 5, 1, 2, 3, 4, 5]);
    for part in &first {
        assert_eq!((part.answered, part.failed), (30, 0), "{part:?}");
    }
    first
}

#[test]
fn clients_inside_the_firmware_are_served_sooner_than_under_round_robin() {
    if !runs() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let [ours, theirs] = [Scheduler::Own, Scheduler::RoundRobin]
        .map(|scheduler| measured(Board::Mps2An385, scheduler, folder.path()));
    // With no latency there is always something to do, so that a request costs what it costs.
    for (ours, theirs) in ours.iter().zip(&theirs).take(5) {
        assert!(ours.requests_per_second > theirs.requests_per_second, "{ours:?} {theirs:?}");
    }
}

#[test]
fn the_same_sources_serve_clients_in_a_program() {
    if !runs() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    measured(Board::Host, Scheduler::Own, folder.path());
}

/// What the server says to these bytes, to its end.
fn ask(port: u16, request: &str) -> String {
    exchange(port, request, PATIENCE).expect("a reply")
}

fn exchange(port: u16, request: &str, patience: Duration) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(request.as_bytes())?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    Ok(reply)
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    stream
}

/// Serves on a port that nobody has. Another program may take it before the emulator does: then the
/// next is tried. The first exchange ends before this returns, so that no handler waits for more of
/// a connection that came while the firmware began.
fn serving(image: &attune_embedded::firmware::Image) -> (Serving, u16) {
    for _ in 0..5 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("its number").port();
        drop(listener);
        let mut serving = image.serve(port).expect("the emulator starts");
        let since = Instant::now();
        while !serving.has_ended() && since.elapsed() < PATIENCE {
            let first = exchange(port, "GET / HTTP/1.0\r\n\r\n", PATIENCE / 10);
            if first.is_ok_and(|reply| reply.starts_with("HTTP/1.0 ")) {
                return (serving, port);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    panic!("the emulator does not serve");
}

#[test]
fn clients_of_this_machine_are_served_through_the_network_card() {
    if !runs() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // A handler gives up later than anything takes here, and before a client of this test does.
    let flags = ["-DPATIENCE_TICKS=60000"];
    let image = build(Board::Mps2An385, Scheduler::Own, &flags, folder.path()).expect("it builds");
    let (mut emulator, port) = serving(&image);

    let page = ask(port, "GET / HTTP/1.0\r\n\r\n");
    assert!(page.starts_with("HTTP/1.0 200 OK\r\n") && page.ends_with("</table>\n"), "{page}");
    assert!(ask(port, "GET /boiler HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 404 "));
    assert!(ask(port, "PUT / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 405 "));

    // Three clients stop in the middle of a request, and one in four handlers is left.
    let stalled: Vec<TcpStream> = (0..3)
        .map(|_| {
            let mut stream = connect(port);
            stream.write_all(b"GET / HT").expect("half a request");
            stream
        })
        .collect();
    for _ in 0..10 {
        assert_eq!(ask(port, "GET / HTTP/1.0\r\n\r\n"), page);
    }
    // One of them goes on, in two pieces, and one goes away.
    let [mut slow, gone, _silent] = <[TcpStream; 3]>::try_from(stalled).expect("three");
    drop(gone);
    slow.write_all(b"TP/1.0\r\n").expect("more");
    slow.write_all(b"\r\n").expect("the end");
    let mut reply = String::new();
    slow.read_to_string(&mut reply).expect("a reply");
    assert_eq!(reply, page);

    // More at once than there are handlers.
    let clients: Vec<_> =
        (0..8).map(|_| std::thread::spawn(move || ask(port, "GET / HTTP/1.0\r\n\r\n"))).collect();
    for client in clients {
        assert_eq!(client.join().expect("a reply"), page);
    }
    assert!(!emulator.has_ended());
}

#[test]
fn a_silent_client_does_not_keep_its_handler() {
    if !runs() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let flags = ["-DHANDLERS=1", "-DPATIENCE_TICKS=1000"];
    let image = build(Board::Mps2An385, Scheduler::Own, &flags, folder.path()).expect("it builds");
    let (_emulator, port) = serving(&image);
    let mut silent = connect(port);
    silent.write_all(b"GET /").expect("a part of a request");
    assert!(ask(port, "GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 200 OK\r\n"));
    // The server has closed the connection without a word.
    let mut said = Vec::new();
    silent.read_to_end(&mut said).expect("its end");
    assert!(said.is_empty());
}
