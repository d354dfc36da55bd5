//! Starting, refusing to start, running out of descriptors, stopping.

use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use attune_lab::webserver::server::{Server, Settings, Source};

use crate::client::{Client, built, counted, start, target};

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(&built().program);
    command.args(arguments).env_remove("ATTUNE_SCHED").output().unwrap()
}

#[test]
fn wrong_command_lines_are_refused() {
    let cases: [(&[&str], &str); 8] = [
        (&["--upstream", "127.0.0.1:1", "--files", "."], "--files and --upstream: one of the two"),
        (&["--port", "70000"], "--port 70000: wants a whole number from 0 to 65535"),
        (&["--port", "x"], "--port x"),
        (&["--handlers", "0"], "--handlers 0"),
        (&["--chunk", "12k"], "--chunk 12k"),
        (&["--idle-timeout", "nan"], "--idle-timeout nan"),
        (&["--nonsense"], "--nonsense"),
        (&["somewhere"], "somewhere: options only"),
    ];
    for (arguments, message) in cases {
        let output = run(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(said.contains(message) && output.stdout.is_empty(), "{said}");
    }
    let help = run(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(String::from_utf8(help.stdout).unwrap().contains("--head-timeout"));
}

#[test]
fn what_it_cannot_serve_is_said() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let cases: [(&[&str], &str); 5] = [
        (&["--port", "0", "--upstream", "8080"], "--upstream 8080: wants HOST:PORT"),
        (&["--port", "0", "--upstream", "127.0.0.1:none"], "--upstream 127.0.0.1:none: "),
        (&["--port", &port], "Address already in use"),
        (
            &["--port", "0", "--files", "/nowhere/at/all"],
            "/nowhere/at/all: No such file or directory",
        ),
        (&["--port", "0", "--host", "localhost"], "--host localhost: no IPv4 address"),
    ];
    for (arguments, message) in cases {
        let output = run(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(message), "{said}");
    }
}

#[test]
fn without_files_it_makes_some() {
    let mut child = Command::new(&built().program)
        .args(["--port", "0"])
        .env_remove("ATTUNE_SCHED")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
    let address =
        line.strip_prefix("listening on ").unwrap().split(',').next().unwrap().parse().unwrap();
    let sizes: Vec<_> = ["/bytes/600", "/bytes/26000", "/large/7", "/bytes/1"]
        .map(|path| Client::connect(address).get(path))
        .map(|reply| if reply.status == 200 { reply.body.len() } else { 0 })
        .to_vec();
    // SAFETY: the child has not been waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let status = child.wait().unwrap();
    let mut summary = String::new();
    std::io::Read::read_to_string(&mut stdout, &mut summary).unwrap();
    assert_eq!(sizes, [600, 26_000, 1 << 20, 0]);
    assert_eq!(status.code(), Some(0));
    assert!(
        summary.starts_with("served 4 requests on 4 connections: 3 files, 1 not found, 0 refused"),
        "{summary}"
    );
}

/// With fewer descriptors than clients, those beyond wait their turn; nobody is turned away.
#[test]
fn runs_out_of_descriptors_and_recovers() {
    let built = built();
    for scheduler in &built.schedulers {
        let limited = built.program.with_file_name("limited");
        std::fs::write(
            &limited,
            format!("#!/bin/sh\nulimit -n 40\nexec '{}' \"$@\"\n", built.program.display()),
        )
        .unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&limited, mode).unwrap();
        let settings = Settings { handlers: 64, chunk: 16384 };
        let extra = ["--idle-timeout", "1"];
        let server = Server::start(
            &limited,
            Some(scheduler),
            Source::Files(&built.site),
            &settings,
            &extra,
            0,
        )
        .unwrap();
        let mut clients: Vec<Client> = (0..100).map(|_| Client::connect(server.address)).collect();
        for client in &mut clients {
            let reply = client.ask("GET /small/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            assert!(reply.body == target("/small/1").body);
        }
        let (summary, status) = server.stop().unwrap();
        assert_eq!((status, counted(&summary, "ok")), (Some(0), 100), "{summary}");
    }
}

#[test]
fn replies_under_way_end_before_the_server_does() {
    for scheduler in &built().schedulers {
        let server = start(scheduler, &[]);
        let mut busy = Client::connect(server.address);
        busy.send("GET /large/0 HTTP/1.1\r\nHost: x\r\n\r\n".repeat(30));
        assert_eq!(busy.head().unwrap().status, 200);
        let mut idle = Client::connect(server.address);
        assert_eq!(idle.get("/small/1").status, 200);
        let address = server.address;
        let stopping = std::thread::spawn(move || server.stop().unwrap());
        assert!(idle.is_closed());
        // The reply that is under way comes to its end, the pipelined ones behind it need not.
        let rest = busy.body(target("/large/0").body.len());
        assert!(rest == target("/large/0").body);
        while busy.reply().is_some() {}
        let (summary, status) = stopping.join().unwrap();
        assert_eq!((status, counted(&summary, "aborted")), (Some(0), 0), "{summary}");
        assert!(std::net::TcpStream::connect(address).is_err());
    }
}

#[test]
fn clients_that_take_nothing_cannot_keep_it_from_ending() {
    for scheduler in &built().schedulers {
        let server = start(scheduler, &["--grace", "0.2"]);
        let mut stuck = Client::connect(server.address);
        stuck.send("GET /large/0 HTTP/1.1\r\nHost: x\r\n\r\n".repeat(40));
        assert_eq!(stuck.head().unwrap().status, 200);
        let (summary, status) = server.stop().unwrap();
        assert_eq!((status, counted(&summary, "aborted")), (Some(0), 1), "{summary}");
    }
}

#[test]
fn a_scheduler_that_is_none_ends_it_with_status_2() {
    let mut command = Command::new(&built().program);
    let output = command
        .args(["--port", "0"])
        .env("ATTUNE_SCHED", "/nowhere.so")
        .arg0("webserver")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("/nowhere.so"), "{said}");
}
