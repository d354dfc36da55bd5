//! `attune coop run`: the command is the program with the library in it.

use std::path::Path;
use std::process::Command;

fn attune(words: &[&str]) -> (Option<i32>, String, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_attune")).args(words).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (done.status.code(), text(&done.stdout), text(&done.stderr))
}

#[test]
fn the_command_has_the_library_and_the_transport() {
    let library = Path::new(env!("CARGO_BIN_EXE_attune")).with_file_name("libattune_coop_preload.so");
    assert!(
        library.exists(),
        "cargo build -p attune-coop-preload comes first; make test builds the workspace"
    );
    let show = "echo $LD_PRELOAD $ATTUNE_COOP; exit 7";
    let (status, out, err) = attune(&["coop", "run", "--transport", "shared:/tmp/x", "--", "sh", "-c", show]);
    assert_eq!((status, err.as_str()), (Some(7), ""));
    assert_eq!(out, format!("{} shared:/tmp/x\n", library.display()));
    assert_eq!(attune(&["coop", "run", "--", "/no/such/program"]).0, Some(127));
    let (status, _, err) = attune(&["coop", "run", "--transport", "loud", "--", "true"]);
    assert!(status == Some(2) && err.contains("no transport `loud`"), "{err}");
    assert!(attune(&["coop", "run", "--help"]).1.contains("attune coop run -- Xvfb :9"));
}
