//! A server behind the proxy that does as the test says, and proxies in front of it.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use attune_lab::webserver::server::{Server, Source};

use crate::client::{PATIENCE, built, start_on};

/// A request as it came from the proxy.
#[derive(Clone, Debug)]
pub struct Request {
    pub head: String,
    /// As it came, with the marks of chunks.
    pub body: Vec<u8>,
}

impl Request {
    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    pub fn has(&self, line: &str) -> bool {
        self.head.lines().any(|other| other.eq_ignore_ascii_case(line))
    }
}

/// Takes connections until the test program ends.
pub struct Behind {
    pub address: SocketAddrV4,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Behind {
    /// `answer` writes the reply; false: the connection ends. A thread serves each connection.
    pub fn start(
        answer: impl Fn(&Request, &mut TcpStream) -> std::io::Result<bool> + Send + Sync + 'static,
    ) -> Behind {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let behind =
            Behind { address: SocketAddrV4::new(Ipv4Addr::LOCALHOST, port), seen: Arc::default() };
        let (seen, answer) = (behind.seen.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, answer) = (seen.clone(), answer.clone());
                std::thread::spawn(move || serve(stream, &seen, &*answer));
            }
        });
        behind
    }

    /// Answers every request with these bytes, on a connection that stays.
    pub fn saying(reply: impl Into<Vec<u8>>) -> Behind {
        let reply = reply.into();
        Behind::start(move |_, stream| stream.write_all(&reply).map(|()| true))
    }

    pub fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<Request>>,
    answer: &dyn Fn(&Request, &mut TcpStream) -> std::io::Result<bool>,
) {
    let mut rest = vec![];
    while let Some(request) = receive(&mut stream, &mut rest) {
        seen.lock().unwrap().push(request.clone());
        if !matches!(answer(&request, &mut stream), Ok(true)) {
            return;
        }
    }
}

/// The next request; None: the proxy has ended the connection.
fn receive(stream: &mut TcpStream, rest: &mut Vec<u8>) -> Option<Request> {
    let head = take_until(stream, rest, b"\r\n\r\n")?;
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let body = if head.contains("Transfer-Encoding: chunked") {
        take_until(stream, rest, b"0\r\n\r\n")?
    } else {
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        while rest.len() < length {
            more(stream, rest)?;
        }
        rest.drain(..length).collect()
    };
    Some(Request { head, body })
}

fn take_until(stream: &mut TcpStream, rest: &mut Vec<u8>, end: &[u8]) -> Option<Vec<u8>> {
    loop {
        if let Some(at) = rest.windows(end.len()).position(|bytes| bytes == end) {
            return Some(rest.drain(..at + end.len()).collect());
        }
        more(stream, rest)?;
    }
}

fn more(stream: &mut TcpStream, rest: &mut Vec<u8>) -> Option<()> {
    let mut buffer = [0; 65536];
    let got = stream.read(&mut buffer).ok().filter(|&got| got > 0)?;
    rest.extend_from_slice(&buffer[..got]);
    Some(())
}

/// A reply with a length, and these fields.
pub fn reply(fields: &str, body: &[u8]) -> Vec<u8> {
    let mut reply =
        format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    reply.extend_from_slice(body);
    reply
}

/// Starts a proxy with each scheduler in turn, in front of a server that `behind` starts, and hands
/// both to the test; then the proxy's summary to `judge`.
pub fn with_proxies(
    extra: &[&str],
    behind: impl Fn() -> Behind,
    test: impl Fn(&Server, &Behind),
    judge: impl Fn(&str),
) {
    for scheduler in &built().schedulers {
        let behind = behind();
        let proxy = start_on(Source::Upstream(behind.address), scheduler, extra);
        test(&proxy, &behind);
        let (summary, status) = proxy.stop().unwrap();
        assert_eq!(status, Some(0), "{summary}");
        judge(&summary);
    }
}

/// Waits until it holds.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}
