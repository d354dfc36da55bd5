//! `attune top`, `set` and `hint` reach the threads of a program by the words that reach the
//! kernel's.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::support::{Folder, err, lines, out, status};

/// A program of the threads engine's own tests, linked with the library that lies beside this test.
fn program(folder: &Path) -> PathBuf {
    let test = std::env::current_exe().expect("the test's own path");
    let library = test.parent().expect("tests lie in a folder");
    let program = folder.join("controlled");
    let output = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-std=gnu11", "-Wall", "-Werror", "-I"])
        .arg(root("engines/threads/include"))
        .arg("-o")
        .args([&program, &root("engines/threads/tests/programs/controlled.c")])
        .arg("-L")
        .arg(library)
        .arg(format!("-Wl,--disable-new-dtags,-rpath,{}", library.display()))
        .arg("-lattune_threads")
        .output()
        .expect("the C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_program_is_seen_and_set_like_the_kernel() {
    let folder = Folder::new("program");
    let policy = root("engines/threads/tests/schedulers/tuned.sched");
    let policy = policy.to_str().expect("a path of letters");
    let built = folder.attune(&["build", policy, "--engine", "threads", "-o", "tuned.so"]);
    assert_eq!(status(&built), 0, "{}", err(&built));
    let place = folder.0.join("control");
    let mut command = Command::new(program(&folder.0));
    command.arg("waits").env("ATTUNE_SCHED", folder.0.join("tuned.so"));
    command.env("ATTUNE_IO", "epoll");
    command.env("ATTUNE_CONTROL", &place).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = Running(command.spawn().expect("it starts"));
    let mut begun = String::new();
    let stdout = running.0.stdout.take().expect("a pipe");
    BufReader::new(stdout).read_line(&mut begun).expect("a line");
    assert_eq!(begun, "begun\n");
    let process = running.0.id();
    let attune = |words: &[&str]| -> Output {
        folder.command(words).env("ATTUNE_VALUES", &place).output().expect("it runs")
    };

    let set = attune(&["set", "limit=9"]);
    assert_eq!((status(&set), out(&set)), (0, "tuned.limit  9  int  tunable\n"), "{}", err(&set));
    let hinted = attune(&["hint", &format!("{process}/3"), "urgent=1"]);
    assert_eq!(status(&hinted), 0, "{}", err(&hinted));
    let refused = attune(&["hint", "1", "urgent=1"]);
    assert_eq!(status(&refused), 1);
    assert!(err(&refused).contains(&format!("this program is process {process}, not 1")));

    let seen = &lines(&attune(&["top", "--json"]))[0];
    let threads = seen["threads"].as_array().expect("a list");
    let urgent: Vec<_> =
        threads.iter().map(|it| (it["name"].as_str(), it["values"]["urgent"].as_i64())).collect();
    let expected = [("main", 0), ("first", 0), ("second", 1)];
    assert_eq!(urgent, expected.map(|(name, urgent)| (Some(name), Some(urgent))));
    let shown = attune(&["top", "--once"]);
    let shown = out(&shown);
    assert!(shown.starts_with(&format!("tuned: 3 threads of process {process}, ")), "{shown}");
    assert!(shown.contains("limit = 9"), "{shown}");
    assert!(shown.contains("descriptors by epoll: ATTUNE_IO=epoll asks for it"), "{shown}");
    let row = shown.lines().find(|line| line.contains("second")).expect("a line of the thread");
    let words: Vec<_> = row.split_whitespace().collect();
    assert_eq!((words[0], words[1], words[2]), ("3", "1", "second"));
}
