//! The proxy where the upstream is down, slow or broken, and where clients are: others do not
//! notice.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use attune_lab::webserver::server::Source;

use crate::behind::{Behind, reply, until, with_proxies};
use crate::client::{Client, built, counted, start_on};
use crate::hostile::{descriptors, until_descriptors};

#[test]
fn an_upstream_that_is_down_is_told() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, free);
    for scheduler in &built().schedulers {
        let proxy = start_on(Source::Upstream(address), scheduler, &[]);
        let mut client = Client::connect(proxy.address);
        for _ in 0..2 {
            let reply = client.get("/a");
            let said = String::from_utf8_lossy(&reply.body).into_owned();
            assert_eq!(reply.status, 502);
            assert_eq!(said, "502 Bad Gateway: the upstream refuses connections\n");
        }
        drop(client);
        let (summary, _) = proxy.stop().unwrap();
        assert_eq!(counted(&summary, "failures"), 2, "{summary}");
    }
}

/// Answers /a at once, and other targets never.
fn stalling() -> Behind {
    Behind::start(|request, stream| {
        if request.line().starts_with("GET /a ") {
            stream.write_all(&reply("Cache-Control: max-age=60\r\n", b"fine"))?;
        } else if request.line().starts_with("GET /half ") {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")?;
        }
        Ok(true)
    })
}

#[test]
fn an_upstream_that_stalls_holds_up_nobody_else() {
    with_proxies(
        &["--upstream-timeout", "1"],
        stalling,
        |proxy, _| {
            let mut stuck: Vec<Client> = (0..20).map(|_| Client::connect(proxy.address)).collect();
            for (number, client) in stuck.iter_mut().enumerate() {
                // Half of them wait for one fetch.
                let path = if number % 2 == 0 { "/same".to_owned() } else { format!("/{number}") };
                client.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
            }
            let mut client = Client::connect(proxy.address);
            for _ in 0..10 {
                assert_eq!(client.get("/a").body, b"fine");
            }
            for client in &mut stuck {
                let reply = client.reply().unwrap();
                let said = String::from_utf8_lossy(&reply.body).into_owned();
                assert_eq!(reply.status, 504);
                assert!(said.contains("the upstream does not answer in time"), "{said}");
            }
        },
        |summary| {
            assert_eq!((counted(summary, "hits"), counted(summary, "failures")), (9, 20));
        },
    );
}

/// The client of a reply that stops in the middle sees that it has not got all.
#[test]
fn a_reply_that_stops_is_cut() {
    with_proxies(
        &["--upstream-timeout", "0.5"],
        stalling,
        |proxy, _| {
            let mut client = Client::connect(proxy.address);
            client.send("GET /half HTTP/1.1\r\nHost: x\r\n\r\n");
            assert_eq!(client.head().unwrap().field("Content-Length"), Some("9"));
            assert_eq!(client.body(4), b"half");
            assert!(client.is_closed());
        },
        |summary| assert_eq!(counted(summary, "failures"), 1, "{summary}"),
    );
}

#[test]
fn an_upstream_that_speaks_no_http_is_told() {
    let cases: [&[u8]; 9] = [
        b"",
        b"complete nonsense\r\n\r\n",
        b"HTTP/1.1 200",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\n c: d\r\n\r\n",
        // To be kept, so its client has got nothing of it yet.
        b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 9\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\nx",
    ];
    for case in cases {
        with_proxies(
            &[],
            || Behind::start(move |_, stream| stream.write_all(case).map(|()| false)),
            |proxy, _| {
                let mut client = Client::connect(proxy.address);
                for _ in 0..2 {
                    assert_eq!(client.get("/a").status, 502, "{}", String::from_utf8_lossy(case));
                }
            },
            |summary| assert_eq!(counted(summary, "kept"), 0, "{summary}"),
        );
    }
    let endless = format!("HTTP/1.1 200 OK\r\nA: {}", "a".repeat(100_000));
    with_proxies(
        &[],
        || Behind::saying(endless.clone()),
        |proxy, _| assert_eq!(Client::connect(proxy.address).get("/a").status, 502),
        |_| {},
    );
}

#[test]
fn garbage_from_the_upstream_ends_in_a_refusal_or_an_end() {
    with_proxies(
        &["--upstream-timeout", "0.3"],
        || {
            let random = std::sync::Mutex::new(fastrand::Rng::with_seed(5));
            Behind::start(move |_, stream| {
                let mut random = random.lock().unwrap().fork();
                let mut bytes: Vec<u8> =
                    (0..random.usize(1..3000)).map(|_| random.u8(..)).collect();
                if random.bool() {
                    let form = ["", "Transfer-Encoding: chunked\r\n", "Content-Length: 2000\r\n"];
                    let form = form[random.usize(..3)];
                    let head = format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=9\r\n{form}\r\n");
                    bytes.splice(0..0, head.into_bytes());
                }
                stream.write_all(&bytes).map(|()| random.bool())
            })
        },
        |proxy, _| {
            for number in 0..60 {
                let client = Client::connect(proxy.address);
                let mut stream = client.stream();
                write!(stream, "GET /{number} HTTP/1.0\r\n\r\n").unwrap();
                let mut said = vec![];
                let _ = stream.read_to_end(&mut said);
                assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 "), "{said:?}");
            }
        },
        |_| {},
    );
}

#[test]
fn clients_that_stall_in_a_body_are_timed_out() {
    with_proxies(
        &["--head-timeout", "0.4"],
        stalling,
        |proxy, behind| {
            let mut client = Client::connect(proxy.address);
            client.send("POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf");
            assert_eq!(client.reply().unwrap().status, 408);
            assert!(client.is_closed());
            assert_eq!(behind.seen().len(), 0, "a request that is not complete is none");
            assert_eq!(Client::connect(proxy.address).get("/a").body, b"fine");
        },
        |summary| assert_eq!(counted(summary, "timeouts"), 1, "{summary}"),
    );
}

#[test]
fn requests_with_broken_bodies_are_refused() {
    with_proxies(
        &["--body-limit", "1000"],
        stalling,
        |proxy, _| {
            let post = "POST /b HTTP/1.1\r\nHost: x\r\n";
            let long = "x".repeat(2000);
            let cases = [
                (format!("{post}Content-Length: 2000\r\n\r\n{long}"), 413),
                (format!("{post}Transfer-Encoding: chunked\r\n\r\n7d0\r\n{long}"), 413),
                (format!("{post}Transfer-Encoding: chunked\r\n\r\nx\r\n"), 400),
                (format!("{post}Transfer-Encoding: gzip\r\n\r\n"), 501),
                (format!("{post}Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"), 400),
                ("CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), 501),
            ];
            for (request, status) in cases {
                let mut client = Client::connect(proxy.address);
                assert_eq!(client.ask(&request).status, status, "{request:.80}");
                assert!(client.is_closed(), "{request:.80}");
            }
            assert_eq!(Client::connect(proxy.address).get("/a").body, b"fine");
        },
        |_| {},
    );
}

/// A client that goes in the middle of a reply ends the fetch of the rest.
#[test]
fn a_client_that_goes_costs_nothing_further() {
    let ended = Arc::new(AtomicBool::new(false));
    for scheduler in &built().schedulers {
        ended.store(false, Ordering::Relaxed);
        let told = ended.clone();
        let behind = Behind::start(move |_, stream| {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")?;
            let piece = vec![0; 65536];
            // For ever, until the proxy ends the connection.
            let error = (0..).try_for_each(|_: u32| stream.write_all(&piece));
            told.store(true, Ordering::Relaxed);
            error.map(|()| false)
        });
        let proxy = start_on(Source::Upstream(behind.address), scheduler, &[]);
        let without = descriptors(&proxy);
        let mut client = Client::connect(proxy.address);
        client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
        client.head().unwrap();
        client.body(100_000);
        drop(client);
        until("the fetch ends", || ended.load(Ordering::Relaxed));
        until_descriptors(&proxy, without);
        assert_eq!(proxy.stop().unwrap().1, Some(0));
    }
}

/// A signal ends it although the upstream keeps it waiting.
#[test]
fn a_stalled_upstream_cannot_keep_it_from_ending() {
    for scheduler in &built().schedulers {
        let behind = stalling();
        let extra = ["--grace", "0.2", "--upstream-timeout", "3600"];
        let proxy = start_on(Source::Upstream(behind.address), scheduler, &extra);
        let mut client = Client::connect(proxy.address);
        client.send("GET /b HTTP/1.1\r\nHost: x\r\n\r\n");
        until("the request is at the upstream", || behind.seen().len() == 1);
        client.stream().shutdown(Shutdown::Write).unwrap();
        let (summary, status) = proxy.stop().unwrap();
        assert_eq!((status, counted(&summary, "aborted")), (Some(0), 1), "{summary}");
    }
}
