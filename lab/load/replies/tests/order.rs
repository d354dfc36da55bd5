//! The program sends every chunk, and it, like every program, links one engine's C functions.

use std::process::Command;

use serde_json::Value;

#[test]
fn each_chunk_of_each_reply_is_sent() {
    let output = Command::new(env!("CARGO_BIN_EXE_attune-replies"))
        .args(["--chunks", "2,1,3"])
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    let order = result["order"].as_str().expect("a text");
    let mut letters: Vec<char> = order.chars().collect();
    letters.sort_unstable();
    assert_eq!(letters, ['A', 'A', 'B', 'C', 'C', 'C'], "{order}");
}

/// Both libraries define the functions of attune.h. A debug build may link both by luck, since the
/// linker takes only the objects that it needs; a release build does not.
#[test]
fn no_package_links_the_functions_of_attune_h_twice() {
    let users = |library: &str| -> Vec<String> {
        let mut tree = Command::new(env!("CARGO"));
        tree.args(["tree", "--workspace", "--locked", "--offline", "--edges", "normal"]);
        tree.args(["--invert", library, "--prefix", "none", "--format", "{p}"]);
        let output = tree.output().expect("cargo runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        said.lines().map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect()
    };
    let (threads, client) = (users("attune-threads"), users("attune-client"));
    assert!(threads.contains(&"attune-replies".to_owned()), "{threads:?}");
    assert!(client.contains(&"attune-load".to_owned()), "{client:?}");
    for package in threads {
        assert!(!client.contains(&package), "{package} links attune-threads and attune-client");
    }
}
