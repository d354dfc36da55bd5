//! The proxy with an upstream and clients that do what they should: what is kept, for how long, and
//! what is passed on.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use attune_lab::webserver::nginx::{self, Role};
use attune_lab::webserver::server::{Server, Source};

use crate::behind::{Behind, reply, until, with_proxies};
use crate::client::{Client, Reply, built, counted, start_on, target};

/// In CI nginx must be there.
fn nginx_is_there() -> bool {
    let there = nginx::program().is_some();
    assert!(there || std::env::var("CI").as_deref() != Ok("true"), "nginx is not installed");
    if !there {
        eprintln!("nginx is not installed: tools/setup.sh webserver");
    }
    there
}

fn with_nginx_behind(test: impl Fn(&Server), judge: impl Fn(&str)) {
    if !nginx_is_there() {
        return;
    }
    for scheduler in &built().schedulers {
        let scratch = tempfile::tempdir().unwrap();
        let behind =
            Server::start_nginx(&Role::Upstream(&built().site), scratch.path(), 0).unwrap();
        let proxy = start_on(Source::Upstream(behind.address), scheduler, &[]);
        test(&proxy);
        let (summary, status) = proxy.stop().unwrap();
        assert_eq!(status, Some(0), "{summary}");
        judge(&summary);
    }
}

#[test]
fn files_of_nginx_come_back_byte_by_byte_and_the_second_time_from_the_cache() {
    let files = built().targets.len() as u64;
    with_nginx_behind(
        |proxy| {
            let mut client = Client::connect(proxy.address);
            for round in 0..2 {
                for target in &built().targets {
                    let reply = client.get(&target.path);
                    assert_eq!(reply.status, 200);
                    assert!(reply.body == target.body, "{} in round {round}", target.path);
                    assert_eq!(reply.field("Via"), Some("1.1 attune-webserver"));
                }
            }
        },
        |summary| {
            assert_eq!((counted(summary, "hits"), counted(summary, "misses")), (files, files));
            assert_eq!(counted(summary, "upstream_connections"), 1, "{summary}");
        },
    );
}

#[test]
fn what_nginx_forbids_to_keep_is_fetched_each_time() {
    with_nginx_behind(
        |proxy| {
            let mut client = Client::connect(proxy.address);
            for _ in 0..3 {
                assert!(client.get("/live/7").body == target("/small/7").body);
            }
        },
        |summary| assert_eq!((counted(summary, "hits"), counted(summary, "misses")), (0, 3)),
    );
}

#[test]
fn nginx_answers_what_is_no_plain_get() {
    with_nginx_behind(
        |proxy| {
            let mut client = Client::connect(proxy.address);
            assert_eq!(client.get("/nowhere").status, 404);
            let posted = "POST /small/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello";
            assert_eq!(client.ask(posted).status, 405);
            let part = client.ask("GET /large/1 HTTP/1.1\r\nHost: x\r\nRange: bytes=5-9\r\n\r\n");
            assert_eq!((part.status, &part.body[..]), (206, &target("/large/1").body[5..10]));
            // HEAD goes to the upstream while nothing is kept, and is answered from what is.
            for expected in [None, Some("0")] {
                client.send("HEAD /small/9 HTTP/1.1\r\nHost: x\r\n\r\n");
                let head = client.head().unwrap();
                let length = target("/small/9").body.len().to_string();
                assert_eq!(head.field("Content-Length"), Some(length.as_str()));
                assert_eq!(head.field("Age").is_some(), expected.is_some());
                client.ask("GET /small/9 HTTP/1.1\r\nHost: x\r\n\r\n");
            }
        },
        |summary| assert_eq!(counted(summary, "hits"), 2, "{summary}"),
    );
}

/// The command of the example's page, with free ports, from a folder like the project's root.
#[test]
fn the_command_of_the_page_starts_a_proxy() {
    let page = include_str!("../../../examples/webserver/README.md");
    let line = page.lines().find(|line| line.contains("--upstream 127.0.0.1:80")).unwrap();
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("target")).unwrap();
    let folder = built().program.parent().unwrap();
    std::os::unix::fs::symlink(folder, root.path().join("target/release")).unwrap();
    let policy = folder.join("shortest_reply.so");
    std::os::unix::fs::symlink(policy, root.path().join("shortest_reply.so")).unwrap();

    let behind = Behind::saying(reply("", b"from the page"));
    let line = line
        .trim()
        .replace("--port 8080", "--port 0")
        .replace("127.0.0.1:80", &behind.address.to_string())
        .replace("ATTUNE_SCHED", "exec env ATTUNE_SCHED");
    let mut proxy = Command::new("sh")
        .args(["-c", &line])
        .current_dir(root.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(proxy.stdout.take().unwrap()).read_line(&mut said).unwrap();
    let address = said.strip_prefix("listening on ").unwrap().split(',').next().unwrap();
    let reply = Client::connect(address.parse().unwrap()).get("/a");
    proxy.kill().unwrap();
    proxy.wait().unwrap();
    assert_eq!(reply.body, b"from the page");
    assert!(said.contains("scheduler shortest_reply"), "{said}");
}

/// A server that numbers its replies, so that a test sees which are new.
fn numbering(fields: &'static str) -> impl Fn() -> Behind {
    move || {
        let count = AtomicUsize::new(0);
        Behind::start(move |_, stream| {
            let number = count.fetch_add(1, Ordering::Relaxed);
            stream.write_all(&reply(fields, number.to_string().as_bytes())).map(|()| true)
        })
    }
}

fn number(reply: &Reply) -> usize {
    String::from_utf8_lossy(&reply.body).parse().unwrap()
}

#[test]
fn a_reply_is_kept_as_long_as_it_says() {
    with_proxies(
        &[],
        numbering("Cache-Control: max-age=1\r\n"),
        |proxy, _| {
            let mut client = Client::connect(proxy.address);
            let first = number(&client.get("/a"));
            until("a new reply", || number(&client.get("/a")) != first);
        },
        |summary| assert!(counted(summary, "hits") > 0, "{summary}"),
    );
}

#[test]
fn replies_that_are_not_for_everybody_are_not_kept() {
    for fields in [
        "",
        "Cache-Control: no-store, max-age=60\r\n",
        "Cache-Control: private, max-age=60\r\n",
        "Cache-Control: no-cache, max-age=60\r\n",
        "Cache-Control: max-age=60\r\nVary: Accept-Language\r\n",
        "Cache-Control: max-age=60\r\nSet-Cookie: me=you\r\n",
        "Expires: Thu, 01 Jan 1970 00:00:00 GMT\r\n",
    ] {
        with_proxies(
            &[],
            numbering(fields),
            |proxy, _| {
                let mut client = Client::connect(proxy.address);
                let numbers = [0; 3].map(|_| number(&client.get("/a")));
                assert_eq!(numbers, [0, 1, 2], "{fields}");
            },
            |_| {},
        );
    }
}

#[test]
fn clients_may_demand_a_new_reply_or_a_kept_one() {
    with_proxies(
        &[],
        numbering("Cache-Control: max-age=3600\r\n"),
        |proxy, behind| {
            let mut client = Client::connect(proxy.address);
            let mut ask = |path: &str, field: &str| {
                client.ask(&format!("GET {path} HTTP/1.1\r\nHost: x\r\n{field}\r\n"))
            };
            assert_eq!(ask("/a", "Cache-Control: only-if-cached\r\n").status, 504);
            assert_eq!(number(&ask("/a", "")), 0);
            assert_eq!(number(&ask("/a", "Cache-Control: only-if-cached\r\n")), 0);
            // The new reply takes the place of the kept one, except under no-store.
            assert_eq!(number(&ask("/a", "Cache-Control: no-cache\r\n")), 1);
            assert_eq!(number(&ask("/a", "")), 1);
            assert_eq!(number(&ask("/a", "Cache-Control: no-store\r\n")), 2);
            assert_eq!(number(&ask("/a", "Authorization: Basic eDp5\r\n")), 3);
            assert_eq!(number(&ask("/a", "")), 1);
            // Host and target tell replies apart.
            assert_eq!(number(&ask("/a?b", "")), 4);
            let other = "GET /a HTTP/1.1\r\nHost: y\r\n\r\n";
            assert_eq!(number(&Client::connect(proxy.address).ask(other)), 5);
            assert_eq!(behind.seen().len(), 6);
        },
        |_| {},
    );
}

#[test]
fn bodies_of_requests_arrive_and_end_what_is_kept() {
    with_proxies(
        &["--body-limit", "1000000"],
        numbering("Cache-Control: max-age=3600\r\n"),
        |proxy, behind| {
            let mut client = Client::connect(proxy.address);
            assert_eq!((number(&client.get("/a")), number(&client.get("/a"))), (0, 0));
            let body = "x".repeat(300_000);
            let head = format!("POST /a HTTP/1.1\r\nHost: test\r\nContent-Length: {}", body.len());
            assert_eq!(client.ask(&format!("{head}\r\n\r\n{body}")).status, 200);
            assert!(behind.seen()[1].body == body.as_bytes());
            assert_eq!(number(&client.get("/a")), 2, "what was kept is out of date");

            let chunked = "PUT /b HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n\
                           5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nT: v\r\n\r\n";
            assert_eq!(client.ask(chunked).status, 200);
            let seen = behind.seen();
            let put = seen.last().unwrap();
            assert_eq!(put.line(), "PUT /b HTTP/1.1");
            let body = String::from_utf8_lossy(&put.body).replace("\r\n", "|");
            assert_eq!(body, "5|hello|6| world|0||", "{put:?}");

            client.send(
                "POST /c HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
            );
            assert_eq!(client.head().unwrap().status, 100);
            client.send("ok");
            assert_eq!(client.reply().unwrap().status, 200);
        },
        |_| {},
    );
}

#[test]
fn what_concerns_a_connection_is_not_passed_on() {
    with_proxies(
        &[],
        || Behind::saying(reply("Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nX-End: 2\r\n", b"")),
        |proxy, behind| {
            let reply = Client::connect(proxy.address).ask(
                "GET http://there/a?b HTTP/1.1\r\nHost: here\r\nConnection: close, X-One\r\n\
                 X-One: 1\r\nX-Two: 2\r\nTE: trailers\r\nUpgrade: h2c\r\n\r\n",
            );
            assert_eq!((reply.field("X-Hop"), reply.field("X-End")), (None, Some("2")));
            assert_eq!(reply.field("Connection"), Some("close"));
            let request = &behind.seen()[0];
            assert_eq!(request.line(), "GET /a?b HTTP/1.1");
            for line in ["Host: there", "X-Two: 2", "X-Forwarded-For: 127.0.0.1"] {
                assert!(request.has(line), "{line}: {request:?}");
            }
            for name in ["X-One", "TE:", "Upgrade", "Connection"] {
                assert!(!request.head.contains(name), "{name}: {request:?}");
            }
        },
        |_| {},
    );
}

const CHUNKED: &str = "Transfer-Encoding: chunked\r\n\r\n4\r\nWiki\r\n6\r\npedia \r\n0\r\n\r\n";

#[test]
fn chunked_replies_are_passed_on_and_kept_whole() {
    with_proxies(
        &[],
        || Behind::saying(format!("HTTP/1.1 200 OK\r\n{CHUNKED}")),
        |proxy, _| {
            let mut client = Client::connect(proxy.address);
            for _ in 0..2 {
                let reply = client.get("/a");
                assert_eq!(reply.field("Transfer-Encoding"), Some("chunked"));
                assert_eq!(reply.body, b"Wikipedia ");
            }
            // A client of HTTP/1.0 knows no chunks: the reply ends with the connection.
            let mut old = Client::connect(proxy.address);
            old.send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
            let head = old.head().unwrap();
            assert_eq!(
                (head.field("Transfer-Encoding"), head.field("Connection")),
                (None, Some("close"))
            );
            assert_eq!(old.body(10), b"Wikipedia ");
            assert!(old.is_closed());
        },
        |_| {},
    );
    with_proxies(
        &[],
        || Behind::saying(format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n{CHUNKED}")),
        |proxy, _| {
            let mut client = Client::connect(proxy.address);
            for _ in 0..2 {
                let reply = client.get("/a");
                assert_eq!(reply.field("Content-Length"), Some("10"));
                assert_eq!(reply.body, b"Wikipedia ");
            }
        },
        |summary| assert_eq!(counted(summary, "hits"), 1, "{summary}"),
    );
}

/// The reply says only as it comes that it is too long to be kept.
#[test]
fn a_chunked_reply_beyond_the_limit_is_passed_on_after_all() {
    let body: Vec<u8> = (0..200_000u32).map(|i| i.to_le_bytes()[0]).collect();
    let expected = body.clone();
    with_proxies(
        &["--object-limit", "100000"],
        move || {
            let mut text = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\
                Transfer-Encoding: chunked\r\n\r\n"
                .to_vec();
            for chunk in body.chunks(7001) {
                text.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                text.extend_from_slice(chunk);
                text.extend_from_slice(b"\r\n");
            }
            text.extend_from_slice(b"0\r\n\r\n");
            Behind::saying(text)
        },
        |proxy, _| {
            let mut client = Client::connect(proxy.address);
            for _ in 0..2 {
                assert!(client.get("/a").body == expected);
            }
        },
        |summary| assert_eq!((counted(summary, "hits"), counted(summary, "kept")), (0, 0)),
    );
}

#[test]
fn a_reply_that_ends_with_its_connection_is_passed_on() {
    with_proxies(
        &[],
        || {
            Behind::start(|_, stream| {
                stream
                    .write_all(b"HTTP/1.0 200 OK\r\nCache-Control: max-age=60\r\n\r\nall of it")?;
                Ok(false)
            })
        },
        |proxy, behind| {
            let mut client = Client::connect(proxy.address);
            for _ in 0..2 {
                assert_eq!(client.get("/a").body, b"all of it");
            }
            assert_eq!(behind.seen().len(), 2, "nothing says that it was complete");
        },
        |_| {},
    );
}

#[test]
fn one_fetch_serves_all_that_ask_meanwhile() {
    with_proxies(
        &[],
        || {
            let first = Mutex::new(true);
            Behind::start(move |_, stream| {
                if std::mem::take(&mut *first.lock().unwrap()) {
                    std::thread::sleep(std::time::Duration::from_millis(300));
                }
                stream.write_all(&reply("Cache-Control: max-age=60\r\n", b"shared")).map(|()| true)
            })
        },
        |proxy, behind| {
            let mut clients: Vec<Client> =
                (0..40).map(|_| Client::connect(proxy.address)).collect();
            for client in &mut clients {
                client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
            }
            for client in &mut clients {
                assert_eq!(client.reply().unwrap().body, b"shared");
            }
            assert_eq!(behind.seen().len(), 1);
        },
        |summary| {
            let without = counted(summary, "hits") + counted(summary, "shared");
            assert_eq!((counted(summary, "misses"), without), (1, 39), "{summary}");
            assert!(counted(summary, "shared") > 0, "{summary}");
        },
    );
}

#[test]
fn the_cache_keeps_its_bound() {
    let file = vec![7; 400_000];
    with_proxies(
        &["--cache", "1000000"],
        move || Behind::saying(reply("Cache-Control: max-age=60\r\n", &file)),
        |proxy, behind| {
            let mut client = Client::connect(proxy.address);
            for path in ["/a", "/b", "/a", "/c", "/a", "/b"] {
                assert_eq!(client.get(path).body.len(), 400_000);
            }
            // /b had to give way to /c, for /a had been asked for since.
            let seen: Vec<String> =
                behind.seen().iter().map(|request| request.line()[4..6].to_owned()).collect();
            assert_eq!(seen, ["/a", "/b", "/c", "/b"]);
        },
        |summary| {
            assert!(counted(summary, "kept_bytes") <= 1_000_000, "{summary}");
            assert_eq!((counted(summary, "kept"), counted(summary, "evicted")), (2, 2));
        },
    );
    with_proxies(
        &["--cache", "0"],
        numbering("Cache-Control: max-age=60\r\n"),
        |proxy, _| {
            let mut client = Client::connect(proxy.address);
            assert_eq!([0; 2].map(|_| number(&client.get("/a"))), [0, 1]);
        },
        |_| {},
    );
}

/// Far more than it may keep goes through, and stays in no memory.
#[test]
fn a_large_reply_takes_little_memory() {
    const SIZE: usize = 256 << 20;
    with_proxies(
        &[],
        || {
            Behind::start(|_, stream| {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n");
                stream.write_all(head.as_bytes())?;
                let piece = vec![1; 1 << 20];
                (0..SIZE >> 20).try_for_each(|_| stream.write_all(&piece))?;
                Ok(true)
            })
        },
        |proxy, _| {
            let mut client = Client::connect(proxy.address);
            client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
            assert_eq!(client.head().unwrap().status, 200);
            for _ in 0..SIZE >> 20 {
                assert!(client.body(1 << 20).iter().all(|byte| *byte == 1));
            }
            let status = std::fs::read_to_string(format!("/proc/{}/status", proxy.id())).unwrap();
            let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
            let kilobytes: usize = most.trim().trim_end_matches(" kB").parse().unwrap();
            assert!(kilobytes < 64 << 10, "{kilobytes} kB");
        },
        |_| {},
    );
}

/// An upstream may end a connection that is idle: the next request does not suffer.
#[test]
fn connections_are_used_again_while_they_last() {
    with_proxies(
        &[],
        numbering(""),
        |proxy, _| {
            let mut client = Client::connect(proxy.address);
            (0..20).for_each(|expected| assert_eq!(number(&client.get("/a")), expected));
        },
        |summary| assert_eq!(counted(summary, "upstream_connections"), 1, "{summary}"),
    );
    with_proxies(
        &[],
        || Behind::start(|_, stream| stream.write_all(&reply("", b"x")).map(|()| false)),
        |proxy, behind| {
            let mut client = Client::connect(proxy.address);
            (0..20).for_each(|_| assert_eq!(client.get("/a").status, 200));
            until("each request has come once", || behind.seen().len() == 20);
        },
        |summary| assert_eq!(counted(summary, "failures"), 0, "{summary}"),
    );
}
