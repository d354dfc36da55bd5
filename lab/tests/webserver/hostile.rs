//! Clients that are broken, slow, or mean harm: each costs the server little, and other clients
//! nothing.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddrV4, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use attune_lab::webserver::server::Server;

use crate::client::{Client, PATIENCE, built, counted, start, target, with_servers};

/// The server answers an ordinary client.
fn assert_well(server: &Server) {
    assert!(Client::connect(server.address).get("/small/9").body == target("/small/9").body);
}

/// Closes with a reset instead of an orderly end.
fn reset(stream: &TcpStream) {
    rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO)).unwrap();
}

#[test]
fn refuses_with_the_right_status_and_closes() {
    with_servers(&["--head-limit", "2000", "--target-limit", "500"], |server| {
        let long = |size: usize| "a".repeat(size);
        let cases = [
            ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400),
            ("complete nonsense\r\n\r\n".to_owned(), 400),
            ("\x16\x03\x01\x02\x00\x01\x00".to_owned(), 400),
            ("GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), 400),
            ("POST / HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), 405),
            ("BREW / HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), 501),
            (
                "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                    .to_owned(),
                501,
            ),
            ("GET / HTTP/3.0\r\nHost: x\r\n\r\n".to_owned(), 505),
            ("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n".to_owned(), 413),
            (format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", long(500)), 414),
            (format!("GET /{}", long(5000)), 414),
            (format!("GET / HTTP/1.1\r\nHost: x\r\nA: {}\r\n\r\n", long(5000)), 431),
            (format!("GET / HTTP/1.1\r\n{}", "A: b\r\n".repeat(1000)), 431),
        ];
        for (request, status) in cases {
            let mut client = Client::connect(server.address);
            let reply = client.ask(&request);
            assert_eq!(reply.status, status, "{request:.60}");
            assert_eq!(reply.field("Connection"), Some("close"), "{request:.60}");
            assert_eq!(reply.field("Allow").is_some(), status == 405, "{request:.60}");
            assert!(client.is_closed(), "{request:.60}");
        }
        assert_well(server);
    });
}

/// A refusal must reach a client that is still sending, not be lost to the reset that unread bytes
/// cause.
#[test]
fn a_refusal_reaches_a_client_that_is_still_sending() {
    with_servers(&[], |server| {
        for _ in 0..20 {
            let mut client = Client::connect(server.address);
            client.send(format!(
                "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n{}",
                "x".repeat(150_000)
            ));
            assert_eq!(client.reply().expect("the refusal").status, 405);
        }
    });
}

/// Half of the clients never say that they are done: only the head's time limit ends those.
#[test]
fn garbage_of_every_kind_ends_in_a_refusal_or_an_end() {
    with_servers(&["--head-timeout", "0.3"], |server| {
        let mut random = fastrand::Rng::with_seed(3);
        let clients = (0..300).map(|round| {
            let mut bytes: Vec<u8> = (0..random.usize(1..3000)).map(|_| random.u8(..)).collect();
            if round % 3 == 0 {
                bytes.splice(0..0, *b"GET /small/1 HTTP/1.1\r\nHost: x\r\n");
            }
            if round % 5 == 0 {
                bytes.extend(b"\r\n\r\n");
            }
            let mut stream = TcpStream::connect(server.address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            // The server may have refused and closed before all is sent.
            let _ = stream.write_all(&bytes);
            if round % 2 == 0 {
                let _ = stream.shutdown(Shutdown::Write);
            }
            stream
        });
        for mut client in clients.collect::<Vec<_>>() {
            let mut said = vec![];
            if let Err(error) = client.read_to_end(&mut said) {
                assert_eq!(error.kind(), ErrorKind::ConnectionReset, "neither refused nor ended");
            }
            let said = String::from_utf8_lossy(&said);
            let refused = ["HTTP/1.1 4", "HTTP/1.1 5"].iter().any(|start| said.starts_with(start));
            assert!(said.is_empty() || refused, "{said}");
        }
        assert_well(server);
    });
}

#[test]
fn slow_senders_are_timed_out_and_hold_up_nobody() {
    // Each client has seconds to begin its request, however busy the machine is.
    let server = start(&built().schedulers[1], &["--head-timeout", "0.4", "--idle-timeout", "4"]);
    let begun = |number: usize| {
        let mut client = Client::connect(server.address);
        client.send(&b"GET /small/1 HTTP/1.1\r\nHost: x\r\n"[..number % 30]);
        client
    };
    let mut slow: Vec<Client> = (0..40).map(begun).collect();
    assert_well(&server);
    for (number, client) in slow.iter_mut().enumerate() {
        // A client that has begun a request is told.
        let status = client.reply().map(|reply| reply.status);
        assert_eq!(status, if number % 30 == 0 { None } else { Some(408) }, "{number}");
        assert!(client.is_closed());
    }
    let (summary, status) = server.stop().unwrap();
    assert_eq!((status, counted(&summary, "timeouts")), (Some(0), 38));
}

/// Sending one byte now and then does not extend a request's time.
#[test]
fn a_trickle_is_cut() {
    with_servers(&["--head-timeout", "0.5"], |server| {
        let mut client = Client::connect(server.address);
        let mut stream = client.stream().try_clone().unwrap();
        let trickle = std::thread::spawn(move || {
            let endless = b"GET / HTTP/1.1\r\nA: ".iter().chain(std::iter::repeat(&b'a'));
            // Far more bytes than the timeout leaves time for; ends when the server closes.
            for byte in endless.take(400) {
                if stream.write_all(&[*byte]).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            panic!("the server waited for all of it");
        });
        assert_eq!(client.reply().unwrap().status, 408);
        drop(client);
        trickle.join().unwrap();
    });
}

#[test]
fn readers_that_take_nothing_are_given_up() {
    let server = start(&built().schedulers[0], &["--reply-timeout", "0.4"]);
    assert_well(&server);
    let without = descriptors(&server);
    let mut stuck: Vec<Client> = (0..20).map(|_| Client::connect(server.address)).collect();
    for client in &mut stuck {
        // More than all buffers on the way can hold.
        client.send("GET /large/0 HTTP/1.1\r\nHost: x\r\n\r\n".repeat(40));
    }
    assert_well(&server);
    // Only the server's patience may end them: the clients stay until it has.
    until_descriptors(&server, without);
    assert_well(&server);
    let (summary, _) = server.stop().unwrap();
    drop(stuck);
    assert_eq!(counted(&summary, "timeouts"), 20, "{summary}");
}

pub fn descriptors(server: &Server) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap().count()
}

/// Waits until the server has so few: a client that it still serves has one.
#[track_caller]
pub fn until_descriptors(server: &Server, few: usize) {
    let begun = Instant::now();
    while descriptors(server) > few {
        assert!(begun.elapsed() < PATIENCE, "{} of {few}", descriptors(server));
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn clients_that_vanish_are_noticed() {
    with_servers(&[], |server| {
        assert_well(server);
        let before = descriptors(server);
        for round in 0..200 {
            let mut client = Client::connect(server.address);
            match round % 4 {
                0 => {}
                1 => client.send("GET /sma"),
                2 => client.send("GET /large/0 HTTP/1.1\r\nHost: x\r\n\r\n"),
                _ => {
                    client.send("GET /large/0 HTTP/1.1\r\nHost: x\r\n\r\n".repeat(3));
                    assert_eq!(client.head().unwrap().status, 200);
                }
            }
            if round % 8 < 4 {
                reset(client.stream());
            }
        }
        assert_well(server);
        // A client that was not noticed would keep its descriptor.
        until_descriptors(server, before);
    });
}

/// More connections than handlers, and none of them asks for anything: the server ends them in
/// favour of those that do.
#[test]
fn thousands_of_silent_connections_give_way() {
    let server = start(&built().schedulers[1], &["--handlers", "256"]);
    let silent: Vec<TcpStream> =
        (0..3000).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    drop(silent.into_iter().rev().step_by(2).collect::<Vec<_>>());
    assert_well(&server);
    // Clients that have asked once and stay hold a handler each until another client needs it.
    let held: Vec<Client> = (0..600)
        .map(|_| {
            let mut client = Client::connect(server.address);
            assert_eq!(client.get("/small/1").status, 200);
            client
        })
        .collect();
    assert_well(&server);
    drop(held);
    let (summary, status) = server.stop().unwrap();
    assert_eq!(status, Some(0));
    assert!(counted(&summary, "reclaimed") > 0, "{summary}");
}

/// Keep-alive clients that always have a request cannot keep others out.
#[test]
fn busy_connections_give_way_to_waiting_ones() {
    with_servers(&["--handlers", "2"], |server| {
        let address: SocketAddrV4 = server.address;
        let (done, replies) = (AtomicBool::new(false), [AtomicUsize::new(0), AtomicUsize::new(0)]);
        std::thread::scope(|scope| {
            let done = &done;
            let hogs = replies.each_ref().map(|replies| {
                scope.spawn(move || {
                    let mut client = Client::connect(address);
                    while !done.load(Ordering::Relaxed) {
                        if client.get("/small/1").field("Connection") == Some("close") {
                            return true;
                        }
                        replies.fetch_add(1, Ordering::Relaxed);
                    }
                    false
                })
            });
            // Each has a handler: together they have all.
            while replies.iter().any(|replies| replies.load(Ordering::Relaxed) == 0) {
                std::thread::yield_now();
            }
            assert_well(server);
            done.store(true, Ordering::Relaxed);
            assert!(
                hogs.map(|hog| hog.join().unwrap()).contains(&true),
                "no client was told to make room"
            );
        });
    });
}
