//! What all tests need: the server built and started, and a client that reads replies byte by byte.

use std::io::{Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use attune_lab::http::schedule::Target;
use attune_lab::schedulers;
use attune_lab::webserver::server::{Server, Settings, Source};
use attune_lab::webserver::site;
use attune_linux::affinity::Cpus;

/// Longer than anything takes; a test that waits so long has failed.
pub const PATIENCE: Duration = Duration::from_secs(90);

pub const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// What is built once for all tests.
pub struct Built {
    pub program: PathBuf,
    pub schedulers: Vec<PathBuf>,
    pub site: PathBuf,
    pub targets: Vec<Target>,
}

pub fn built() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("webserver");
        std::fs::create_dir_all(&folder).unwrap();
        // Cargo puts the C library, a dependency of these tests, beside them.
        let library = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
        let made = Command::new("make")
            .args(["--silent", "-C"])
            .arg(Path::new(PROJECT).join("examples/webserver"))
            .arg(format!("OUT={}", folder.display()))
            .arg(format!("LIBRARY_DIR={}", library.display()))
            .status()
            .expect("make is needed to build the server");
        assert!(made.success(), "the server does not build");
        let compile = |name: &str| {
            let compiled = folder.join(format!("{name}.so"));
            schedulers::compile(name, &compiled).unwrap();
            compiled
        };
        let site = folder.join("site");
        Built {
            program: folder.join("webserver"),
            schedulers: vec![compile("fifo"), compile("shortest_reply")],
            targets: site::create(&site).unwrap(),
            site,
        }
    })
}

/// Starts the server with each scheduler in turn, with these options added, and hands it to the
/// test.
pub fn with_servers(extra: &[&str], test: impl Fn(&Server)) {
    for scheduler in &built().schedulers {
        let server = start(scheduler, extra);
        test(&server);
        let (summary, status) = server.stop().unwrap();
        assert_eq!(status, Some(0), "{summary}");
        assert!(summary.starts_with("{\"connections\":"), "{summary}");
    }
}

pub fn start(scheduler: &Path, extra: &[&str]) -> Server {
    start_on(Source::Files(&built().site), scheduler, extra)
}

/// A server of files, or a proxy.
pub fn start_on(source: Source, scheduler: &Path, extra: &[&str]) -> Server {
    let built = built();
    let settings = Settings { handlers: 64, chunk: 16384 };
    let core = Cpus::of_this_thread().unwrap().iter().next().unwrap();
    Server::start(&built.program, Some(scheduler), source, &settings, extra, core).unwrap()
}

/// One figure of the server's summary.
pub fn counted(summary: &str, name: &str) -> u64 {
    let summary: serde_json::Value = serde_json::from_str(summary).unwrap();
    summary[name].as_u64().unwrap_or_else(|| panic!("{summary} has no {name}"))
}

pub fn target(path: &str) -> &'static Target {
    built().targets.iter().find(|target| target.path == path).unwrap()
}

/// A reply as it came.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn field(&self, name: &str) -> Option<&str> {
        let start = format!("{}:", name.to_ascii_lowercase());
        self.head
            .lines()
            .find(|line| line.to_ascii_lowercase().starts_with(&start))
            .map(|line| line[start.len()..].trim())
    }
}

/// A connection to the server.
pub struct Client {
    stream: TcpStream,
    /// Received and not yet understood.
    rest: Vec<u8>,
}

impl Client {
    pub fn connect(address: SocketAddrV4) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Client { stream, rest: Vec::new() }
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    pub fn ask(&mut self, request: &str) -> Reply {
        self.send(request);
        self.reply().expect("a reply")
    }

    pub fn get(&mut self, path: &str) -> Reply {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"))
    }

    /// The next reply to anything but HEAD; None if the server has closed.
    pub fn reply(&mut self) -> Option<Reply> {
        let mut reply = self.head()?;
        reply.body = match reply.field("Transfer-Encoding") {
            Some("chunked") => self.chunks(),
            _ => self.body(reply.field("Content-Length").unwrap().parse().unwrap()),
        };
        Some(reply)
    }

    /// A body in chunks, after a head.
    fn chunks(&mut self) -> Vec<u8> {
        let mut body = vec![];
        loop {
            let end = loop {
                match self.rest.windows(2).position(|bytes| bytes == b"\r\n") {
                    Some(end) => break end,
                    None => assert!(self.receive() > 0, "closed in the middle of a chunk"),
                }
            };
            let line: Vec<u8> = self.rest.drain(..end + 2).collect();
            let size = usize::from_str_radix(str::from_utf8(&line[..end]).unwrap(), 16).unwrap();
            let chunk = self.body(size + 2);
            assert_eq!(&chunk[size..], b"\r\n");
            body.extend_from_slice(&chunk[..size]);
            if size == 0 {
                return body;
            }
        }
    }

    /// So many bytes, after a head.
    pub fn body(&mut self, length: usize) -> Vec<u8> {
        while self.rest.len() < length {
            assert!(self.receive() > 0, "closed in the middle of a reply");
        }
        self.rest.drain(..length).collect()
    }

    /// The next reply's head alone.
    pub fn head(&mut self) -> Option<Reply> {
        let end = loop {
            if let Some(end) = self.rest.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end;
            }
            if self.receive() == 0 {
                assert!(self.rest.is_empty(), "closed in the middle of a head: {:?}", self.rest);
                return None;
            }
        };
        let head = String::from_utf8(self.rest.drain(..end + 4).collect()).unwrap();
        let status = head
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest[..3].parse().ok())
            .expect("a status line");
        Some(Reply { status, head, body: Vec::new() })
    }

    /// True once the server has closed and nothing was left over. A reset counts as closed.
    pub fn is_closed(&mut self) -> bool {
        self.rest.is_empty() && self.receive() == 0
    }

    fn receive(&mut self) -> usize {
        let mut buffer = [0; 65536];
        let got = match self.stream.read(&mut buffer) {
            Ok(got) => got,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("waiting for the server: {error}"),
        };
        self.rest.extend_from_slice(&buffer[..got]);
        got
    }
}
