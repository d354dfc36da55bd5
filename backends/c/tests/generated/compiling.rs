//! The C compiler, as users call it.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use attune_backend_c::{Options, compile};

use crate::support::c_of;

const FLOATS: &str = "scheduler floats {
    thread { float a = 0.0; float b = 0.0; float c = 0.0; }
    data { threadref current; queue RQ; }
    event newthread(t) { t.a = t.b * t.c + t.a; t => RQ; }
    event event_raised(t) { t.a = t.a - t.b * t.c; t => RQ; }
    event schedule { if (|RQ| > 0) { RQ => current; dispatch current; } }
    event switch_out { if (|current| > 0) current => RQ; }
}";

/// A plain `cc` that may contract a product and a sum into one operation does not.
#[test]
fn each_float_operation_rounds_by_itself() {
    let c = c_of("floats.sched", FLOATS, &Options::default());
    for compiler in ["gcc", "clang-19"] {
        let flags =
            ["-O2", "-march=haswell", "-ffp-contract=fast", "-x", "c", "-S", "-o", "-", "-"];
        // Clang lets the flag overrule the pragma; its own default does not.
        let flags = flags.iter().filter(|flag| compiler == "gcc" || !flag.starts_with("-ffp"));
        let mut child = Command::new(compiler)
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(c.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{compiler}");
        let assembly = String::from_utf8(output.stdout).unwrap();
        assert!(assembly.contains("mulsd"), "{compiler}");
        assert!(!assembly.contains("fmadd") && !assembly.contains("fnmadd"), "{compiler}");
    }
}

#[test]
fn a_shared_object_exports_the_scheduler_and_nothing_else() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("exports");
    fs::create_dir_all(&folder).unwrap();
    for debug in [false, true] {
        let out = folder.join("floats.so");
        compile(&c_of("floats.sched", FLOATS, &Options { debug }), &out, debug).unwrap();
        let output = Command::new("nm").args(["-D", "--defined-only"]).arg(&out).output().unwrap();
        let symbols = String::from_utf8(output.stdout).unwrap();
        let names: Vec<&str> =
            symbols.lines().filter_map(|line| line.split(' ').next_back()).collect();
        assert_eq!(names, ["attune_scheduler"]);
    }
    let left: Vec<_> =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["floats.so"]);
}

#[test]
fn an_object_that_cannot_be_written_is_named() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("no/such/folder/x.so");
    let error = compile("int x;", &out, false).unwrap_err().to_string();
    assert!(error.contains("no/such/folder"), "{error}");
}
