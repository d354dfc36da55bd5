//! Clients that do what clients should.

use std::fs;
use std::os::unix::fs::symlink;

use attune_lab::http::generator::{self, Fate, Loop};
use attune_lab::http::schedule::Pattern;
use attune_lab::webserver::server::{Server, Settings, Source};

use crate::client::{Client, PATIENCE, PROJECT, built, target, with_servers};

#[test]
fn every_file_comes_back_byte_by_byte() {
    with_servers(&[], |server| {
        let mut client = Client::connect(server.address);
        for target in &built().targets {
            let reply = client.get(&target.path);
            assert_eq!((reply.status, reply.field("Connection")), (200, Some("keep-alive")));
            assert!(reply.body == target.body, "{}", target.path);
            assert!(
                reply.field("Date").is_some_and(|date| date.ends_with(" GMT")),
                "{}",
                reply.head
            );
        }
    });
}

/// Whatever the size of a chunk, and with it the place where the reply's head ends.
#[test]
fn chunks_of_any_size_make_the_same_reply() {
    for chunk in ["1", "100", "599", "1048577"] {
        with_servers(&["--chunk", chunk], |server| {
            let path = if chunk == "1" { "/small/0" } else { "/large/0" };
            assert!(
                Client::connect(server.address).get(path).body == target(path).body,
                "chunk {chunk}"
            );
        });
    }
}

#[test]
fn closes_when_told_to_and_stays_open_when_not() {
    with_servers(&[], |server| {
        let cases = [
            ("HTTP/1.1\r\nHost: x\r\n", true),
            ("HTTP/1.1\r\nHost: x\r\nConnection: close\r\n", false),
            ("HTTP/1.0\r\n", false),
            ("HTTP/1.0\r\nConnection: keep-alive\r\n", true),
        ];
        for (rest, stays) in cases {
            let mut client = Client::connect(server.address);
            let reply = client.ask(&format!("GET /small/3 {rest}\r\n"));
            assert!(reply.body == target("/small/3").body);
            assert_eq!(
                reply.field("Connection"),
                Some(if stays { "keep-alive" } else { "close" }),
                "{rest}"
            );
            if stays {
                assert_eq!(client.get("/small/4").status, 200, "{rest}");
            } else {
                assert!(client.is_closed(), "{rest}");
            }
        }
    });
}

#[test]
fn head_says_what_get_would_and_sends_nothing_more() {
    with_servers(&[], |server| {
        let mut client = Client::connect(server.address);
        for path in ["/large/1", "/small/5", "/nowhere"] {
            client.send(format!("HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
            let head = client.head().unwrap();
            let get = client.get(path);
            assert_eq!(
                (head.status, head.field("Content-Length")),
                (get.status, get.field("Content-Length")),
                "{path}"
            );
        }
    });
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    with_servers(&[], |server| {
        let paths: Vec<String> = (0..40)
            .map(|i| if i % 13 == 0 { "/large/2".into() } else { format!("/small/{i}") })
            .collect();
        let request = |path: &String| format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
        let all: String = paths.iter().map(request).collect();
        // All at once; in pieces that end anywhere; and with line ends too many in between, which
        // must be forgiven.
        let mut at_once = Client::connect(server.address);
        at_once.send(&all);
        let mut in_pieces = Client::connect(server.address);
        let mut spaced = Client::connect(server.address);
        let (pieces, spaces) = std::thread::scope(|scope| {
            let pieces = scope.spawn(|| {
                let mut stream = in_pieces.stream();
                all.as_bytes()
                    .chunks(37)
                    .for_each(|piece| std::io::Write::write_all(&mut stream, piece).unwrap());
                paths.iter().all(|path| in_pieces.reply().unwrap().body == target(path).body)
            });
            let spaces = scope.spawn(|| {
                spaced.send(
                    paths.iter().map(|path| format!("\r\n{}", request(path))).collect::<String>(),
                );
                paths.iter().all(|path| spaced.reply().unwrap().body == target(path).body)
            });
            (pieces.join().unwrap(), spaces.join().unwrap())
        });
        assert!(pieces && spaces);
        for path in &paths {
            assert!(at_once.reply().unwrap().body == target(path).body, "{path}");
        }
    });
}

#[test]
fn a_request_that_ends_the_connection_ends_the_pipeline() {
    with_servers(&[], |server| {
        let mut client = Client::connect(server.address);
        client.send(
            "GET /small/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\nGET /small/2 HTTP/1.1\r\n\
                Host: x\r\n\r\n",
        );
        assert!(client.reply().unwrap().body == target("/small/1").body);
        assert!(client.is_closed());
    });
}

#[test]
fn bodies_of_requests_are_skipped() {
    with_servers(&["--body-limit", "1000"], |server| {
        let mut client = Client::connect(server.address);
        let with_body = |size: usize| {
            let body = "GET /large/0 HTTP/1.1\r\n".repeat(size).into_bytes();
            [
                format!("GET /small/1 HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n")
                    .as_bytes(),
                &body[..size],
            ]
            .concat()
        };
        for size in [0, 1, 1000] {
            client.send(with_body(size));
            assert!(client.reply().unwrap().body == target("/small/1").body);
        }
        client.send(with_body(1001));
        assert_eq!(client.reply().unwrap().status, 413);
        assert!(client.is_closed());

        // A client that asks for leave to send a body gets the answer at once.
        let mut client = Client::connect(server.address);
        let reply = client.ask(
            "GET /small/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\
                \n",
        );
        assert_eq!((reply.status, reply.field("Connection")), (200, Some("close")));
    });
}

#[test]
fn serves_what_is_below_its_folder_and_nothing_else() {
    let built = built();
    let folder = built.site.parent().unwrap().join("escape");
    let site = folder.join("site");
    fs::create_dir_all(site.join("sub dir")).unwrap();
    fs::write(folder.join("secret"), "secret").unwrap();
    fs::write(site.join("index.html"), "root").unwrap();
    fs::write(site.join("sub dir/index.html"), "sub").unwrap();
    fs::write(site.join("empty.css"), "").unwrap();
    if !site.join("link").is_symlink() {
        symlink(folder.join("secret"), site.join("link")).unwrap();
    }
    let settings = Settings { handlers: 8, chunk: 16384 };
    let server = Server::start(
        &built.program,
        Some(&built.schedulers[0]),
        Source::Files(&site),
        &settings,
        &[],
        0,
    )
    .unwrap();
    let ask = |path: &str| {
        let reply = Client::connect(server.address).get(path);
        let body = String::from_utf8(reply.body.clone()).unwrap();
        assert!(!body.contains("secret"), "{path}");
        let kind = reply.field("Content-Type").map(str::to_owned);
        (
            reply.status,
            if reply.status == 200 { body } else { String::new() },
            kind.unwrap_or_default(),
        )
    };
    let html = "text/html; charset=utf-8".to_owned();
    assert_eq!(ask("/"), (200, "root".into(), html.clone()));
    assert_eq!(ask("/sub%20dir/"), (200, "sub".into(), html.clone()));
    assert_eq!(ask("/sub%20dir/../index.html?a=/../b"), (200, "root".into(), html));
    assert_eq!(ask("/empty.css"), (200, String::new(), "text/css; charset=utf-8".into()));
    for path in ["/link", "/sub", "/../secret/x", "/sub%20dir", "/index.html/", "/%2e"] {
        assert_ne!(ask(path).1, "secret", "{path}");
    }
    for path in
        ["/../secret", "/%2e%2e/secret", "/..%2fsecret", "/sub%20dir/../../secret", "/%00", "/%zz"]
    {
        assert_eq!(ask(path).0, 400, "{path}");
    }
    assert_eq!(ask("/link").0, 404);
}

/// Many at a time, with chunks, yields and idle handlers going round: the right bytes to the right
/// client.
#[test]
fn nothing_is_lost_or_mixed_up_under_load() {
    with_servers(&[], |server| {
        let targets = &built().targets;
        let pattern = Pattern { rate: 3_000.0, length: 1_000_000_000, large_share: 0.05, seed: 5 };
        let arrivals = pattern.arrivals(targets);
        for kind in [Loop::Closed(20), Loop::Closed(300), Loop::Open] {
            let outcome =
                generator::run(server.address, targets, &arrivals, kind, PATIENCE).unwrap();
            let answered =
                outcome.fates.iter().filter(|fate| matches!(fate, Fate::Answered(_))).count();
            assert_eq!(answered, arrivals.len(), "{:?}", outcome.complaint);
            assert!(outcome.verified > 100);
        }
    });
}

/// The generator that all figures come from must notice a wrong reply.
#[test]
fn the_generator_notices_wrong_answers() {
    with_servers(&[], |server| {
        let mut targets = built().targets.clone();
        let pattern = Pattern { rate: 2_000.0, length: 500_000_000, large_share: 0.0, seed: 5 };
        let arrivals = pattern.arrivals(&targets);
        let wrong = |targets: &[_]| {
            let outcome =
                generator::run(server.address, targets, &arrivals, Loop::Closed(10), PATIENCE)
                    .unwrap();
            outcome.fates.iter().filter(|fate| **fate == Fate::Wrong).count()
        };
        assert_eq!(wrong(&targets), 0);
        targets[7].body[100] ^= 1;
        assert!(wrong(&targets) > 0, "one bit");
        targets[7].body.push(0);
        assert!(wrong(&targets) > 5, "the length");
        targets[8].path = "/nowhere".to_owned();
        assert!(wrong(&targets) > 15, "the status");
    });
}

#[test]
fn parser_and_proxy_withstand_their_own_tests() {
    let made = std::process::Command::new("make")
        .args(["--silent", "-C"])
        .arg(std::path::Path::new(PROJECT).join("examples/webserver"))
        .arg(format!("OUT={}", built().program.parent().unwrap().display()))
        .args(["parser-test", "proxy-test"])
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}{}",
        String::from_utf8_lossy(&made.stdout),
        String::from_utf8_lossy(&made.stderr)
    );
}
