//! MariaDB as it comes from Debian, with the loadable function and the clients of
//! examples/database: what a session says of its transaction reaches an engine, and ends with the
//! session, however that ends. It needs what `tools/setup.sh test` installs.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use attune_broker::{Broker, Memory};

const PATIENCE: Duration = Duration::from_secs(90);

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&said));
}

/// Says why where MariaDB is missing.
fn is_installed() -> bool {
    let has = |program: &str| {
        let there = |folder: &str| Path::new(folder).join(program).exists();
        ["/usr/bin", "/usr/sbin"].into_iter().any(there)
    };
    let has_all =
        ["mariadbd", "mariadb", "mariadb-install-db", "mariadb_config"].into_iter().all(has);
    let missing = "this test needs MariaDB: tools/setup.sh test installs it";
    assert!(has_all || std::env::var("CI").as_deref() != Ok("true"), "{missing}");
    if !has_all {
        eprintln!("{missing}");
    }
    has_all
}

/// attune_hint.so and database-clients, linked against the library that cargo has built.
fn build(folder: &Path) {
    let test = std::env::current_exe().expect("the test's own path");
    let library = test.parent().expect("tests lie in a directory").display();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/database");
    run(Command::new("make")
        .arg("-C")
        .arg(example)
        .arg(format!("OUT={}", folder.display()))
        .arg(format!("LIBRARY_DIR={library}"))
        .arg("WARNINGS=-Wall -Wextra -Werror"));
}

/// A server of its own files, on a socket in its folder and no port.
struct Server {
    child: Child,
    folder: PathBuf,
}

impl Server {
    /// A server that starts removes what it takes for temporary tables of an earlier one, so each
    /// has a place of its own for them.
    fn start(folder: &Path, values: &Path) -> Server {
        let data = format!("--datadir={}", folder.join("data").display());
        run(Command::new("mariadb-install-db")
            .args(["--no-defaults", "--user=root", "--skip-test-db"])
            .args(["--auth-root-authentication-method=normal", &data])
            .env("TMPDIR", folder));
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let child = Command::new("/usr/sbin/mariadbd")
            .args(["--no-defaults", "--user=root", "--skip-networking", &data])
            // As examples/database/README.md says: a thread ends with its session.
            .arg("--thread-cache-size=0")
            .args(["--innodb-buffer-pool-size=16M", "--innodb-log-file-size=8M"])
            .arg(format!("--plugin-dir={}", folder.display()))
            .arg(format!("--socket={}", folder.join("sql").display()))
            .arg(format!("--pid-file={}", folder.join("pid").display()))
            .env("ATTUNE_VALUES", values)
            .env("TMPDIR", folder)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut server = Server { child, folder: folder.to_owned() };
        let patience = Instant::now() + PATIENCE;
        while std::os::unix::net::UnixStream::connect(folder.join("sql")).is_err() {
            let log = || std::fs::read_to_string(folder.join("log")).unwrap();
            assert!(server.child.try_wait().unwrap().is_none(), "{}", log());
            assert!(Instant::now() < patience, "{}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    fn process(&self) -> i32 {
        self.child.id() as i32
    }

    fn socket(&self) -> String {
        self.folder.join("sql").display().to_string()
    }

    /// Errors stand among the answers, and the session goes on after them.
    fn session(&self) -> Session {
        let mut child = Command::new("sh")
            .args(["-c", "exec mariadb \"$@\" 2>&1", "sh"])
            .args(["--no-defaults", "--user=root", "--batch", "--skip-column-names"])
            .args(["--unbuffered", "--force"])
            .arg(format!("--socket={}", self.socket()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = child.stdin.take().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let (say, answers) = channel();
        std::thread::spawn(move || {
            said.lines().map_while(Result::ok).try_for_each(|l| say.send(l))
        });
        Session { child, orders, answers }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of the server's package.
struct Session {
    child: Child,
    orders: ChildStdin,
    answers: Receiver<String>,
}

impl Session {
    /// Statements without an answer, and one whose answer has one line.
    #[track_caller]
    fn ask(&mut self, statements: &str) -> String {
        writeln!(self.orders, "{statements};").unwrap();
        self.answer()
    }

    /// A wrong statement: what the server says of it, after the client has said which one it was.
    #[track_caller]
    fn complaint(&mut self, statement: &str) -> String {
        let mut answer = self.ask(statement);
        while !answer.starts_with("ERROR ") {
            answer = self.answer();
        }
        answer
    }

    #[track_caller]
    fn answer(&mut self) -> String {
        self.answers.recv_timeout(PATIENCE).expect("the server answers")
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Things that another process does take their time, but end.
#[track_caller]
fn becomes<T: PartialEq + std::fmt::Debug>(wanted: T, look: impl Fn() -> T) {
    let patience = Instant::now() + PATIENCE;
    while look() != wanted && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(look(), wanted);
}

/// What transactions change in several places is the same in all of them.
#[test]
fn transactions_of_many_clients_leave_the_books_in_order() {
    if !is_installed() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("values");
    let memory = Memory::new(&[("read_locks", 0), ("write_locks", 0)], 16);
    let _broker = Broker::start(&socket, memory.clone()).unwrap();
    build(folder.path());
    let server = Server::start(folder.path(), &socket);
    let mut books = server.session();
    let tables = include_str!("../../../examples/database/tables.sql");
    assert_eq!(books.ask(&format!("{tables} SELECT COUNT(*) FROM orders")), "1200");

    let clients = Command::new(folder.path().join("database-clients"))
        .args(["--socket", &server.socket(), "--rate", "150", "--seconds", "2"])
        .args(["--sessions", "4", "--hints", "locks"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&clients.stdout);
    assert!(clients.status.success(), "{said}{}", String::from_utf8_lossy(&clients.stderr));
    let count = |class: &str| -> u64 {
        let (_, rest) = said.split_once(&format!("\"{class}\":{{\"count\":")).expect(class);
        rest.split_once(',').unwrap().0.parse().unwrap()
    };
    // The seed's: each that came was answered.
    assert_eq!((count("orders"), count("others"), count("all")), (134, 166, 300));

    let orders = 1200 + count("orders");
    for (what, wanted) in [
        ("COUNT(*) FROM orders", orders),
        ("SUM(next_order - 1) FROM district", orders),
        ("SUM(line_count) - (SELECT COUNT(*) FROM order_line) FROM orders", 0),
        ("COUNT(*) - (SELECT COUNT(*) FROM orders WHERE carrier IS NULL) FROM new_order", 0),
        ("SUM(ytd) = (SELECT SUM(amount) FROM history) FROM warehouse", 1),
        ("SUM(ytd) = (SELECT SUM(amount) FROM history) FROM district", 1),
        ("COUNT(*) > 100 FROM history", 1),
        ("COUNT(*) < 10 * 40 FROM new_order WHERE o <= 30", 1),
    ] {
        assert_eq!(books.ask(&format!("SELECT {what}")), wanted.to_string(), "{what}");
    }
    becomes(vec![], || memory.threads(server.process()));
}

/// One server for all, because setting it up takes most of the time.
#[test]
fn a_session_says_what_its_thread_does_until_it_ends() {
    if !is_installed() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("values");
    build(folder.path());
    let server = Server::start(folder.path(), &socket);
    let memory = Memory::new(&[("transaction", 0)], 16);
    let values = || {
        let threads = memory.threads(server.process());
        let mut values: Vec<i64> = threads
            .into_iter()
            .filter_map(|thread| memory.value(server.process(), thread, "transaction"))
            .collect();
        values.sort_unstable();
        values
    };

    let mut keeper = server.session();
    let create = "CREATE FUNCTION attune_hint RETURNS INTEGER SONAME 'attune_hint.so'";
    let table = "CREATE DATABASE shop; USE shop; CREATE TABLE item (number INT PRIMARY KEY, \
                 stock INT) ENGINE=InnoDB; INSERT INTO item VALUES (1, 10)";
    assert_eq!(keeper.ask(&format!("{create}; {table}; SELECT stock FROM item")), "10");

    // Without a run nothing hears it; a run that starts later does.
    assert_eq!(keeper.ask("SELECT attune_hint('transaction', 3)"), "3");
    assert_eq!(keeper.ask("SELECT stock FROM item"), "10");
    let _broker = Broker::start(&socket, memory.clone()).unwrap();
    becomes(vec![3], values);

    // Each session speaks for its own thread, each call counts, and the last one holds.
    let mut buyer = server.session();
    assert_eq!(buyer.ask("SELECT attune_hint('transaction', 9)"), "9");
    assert_eq!(values(), [3, 9]);
    assert_eq!(buyer.ask("SELECT attune_hint('transaction', 2 + 2)"), "4");
    assert_eq!(values(), [3, 4]);

    // What makes no sense says so and changes nothing.
    let wants = "it wants the name of a thread import and a whole number";
    let long = format!("'{}', 1", "x".repeat(256));
    for (wrong, why) in [
        ("'transaction'", wants),
        ("5, 5", wants),
        ("'transaction', 'much'", wants),
        ("'transaction', 0.5", wants),
        ("COLUMN_NAME, 5", "the name must be a constant"),
        ("'', 5", "Invalid argument"),
        (&long, "the name is longer than 255 bytes"),
        ("'transition', 5", "the scheduler has no thread import of that name"),
    ] {
        let from = "FROM information_schema.COLUMNS LIMIT 1";
        let answer = buyer.complaint(&format!("SELECT attune_hint({wrong}) {from}"));
        assert!(answer.contains(why), "{wrong}: {answer}");
    }
    assert_eq!(buyer.ask("SELECT attune_hint('transaction', CAST(NULL AS SIGNED))"), "NULL");
    assert_eq!(values(), [3, 4]);

    // A client is killed inside a transaction: its locks and its importance go.
    let begin = "USE shop; DO attune_hint('transaction', 8); START TRANSACTION; \
                 UPDATE item SET stock = stock - 1 WHERE number = 1; SELECT stock FROM item";
    assert_eq!(buyer.ask(begin), "9");
    assert_eq!(values(), [3, 8]);
    drop(buyer);
    becomes(vec![3], values);
    let take = "UPDATE item SET stock = stock - 2 WHERE number = 1; SELECT stock FROM item";
    assert_eq!(keeper.ask(take), "8");
    let mut next = server.session();
    assert_eq!(next.ask("SELECT 'a new session'"), "a new session");
    assert_eq!(values(), [3]);

    // The function goes and comes while the client library's thread runs.
    let again =
        format!("DROP FUNCTION attune_hint; {create}; SELECT attune_hint('transaction', 5)");
    assert_eq!(next.ask(&again), "5");
    assert_eq!(values(), [3, 5]);
}
