//! No thread uses more of its stack than the compiler's frames add up to.
//!
//! The engine paints stacks; on the emulator an interrupt every few hundred instructions comes at
//! all depths.

use std::path::Path;

use attune_backend_c::Policy;
use attune_backend_c::embedded::Files;
use attune_embedded::firmware::{Board, Firmware, available};
use attune_embedded::stack::{Inlining, Stack};
use attune_language::engine::Engine;
use attune_language::{Options, check};

/// An interrupt's frame: eight words, and one that aligns.
const EXCEPTION: u32 = 36;

const PROJECT: [(&str, &str); 1] = [("stacks.c", include_str!("firmware/stacks.c"))];
const BOARD: [(&str, &str); 3] = [
    ("board.h", include_str!("../boards/board.h")),
    ("board.c", include_str!("../boards/mps2-an385/board.c")),
    ("print.c", include_str!("../boards/print.c")),
];

fn library(name: &str) -> Files {
    let mut opened = attune_schedulers::open(Path::new(name), &[]).expect("a scheduler");
    let checked = check(&opened.source, &mut opened.loader, &Options::default());
    let program = checked.program.as_ref().expect("a program");
    let verdicts = &checked.engine(Engine::Embedded).verdicts;
    let policy = Policy { program, verdicts, sources: &checked.sources };
    attune_embedded::source(policy, false).expect("C")
}

/// What a thread may use: its own way down, and an interrupt at the bottom of it.
fn bound(files: &Files, folder: &Path) -> u32 {
    let project: Vec<_> = PROJECT.into_iter().chain(BOARD).collect();
    let stack = Stack::of(files, &project, Inlining::AsInFirmware, folder).expect("frames");
    let deepest = |function| {
        // The entry of a thread is called through a pointer.
        let found = stack.deepest(function, &["__indirect_call", "memcpy", "memset"]);
        found.unwrap_or_else(|error| panic!("{error}")).bytes
    };
    let begin = stack.frame("attune_begin").expect("it is there");
    let thread = deepest("attune_begin").max(begin + deepest("worker"));
    thread + EXCEPTION + deepest("board_timer")
}

#[test]
fn no_thread_uses_more_stack_than_the_frames_add_up_to() {
    if let Err(missing) = available(Board::Mps2An385) {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{missing}");
        eprintln!("not run: {missing}");
        return;
    }
    for policy in ["fifo", "round_robin", "weather", "fair", "edf"] {
        let files = library(policy);
        let folder = tempfile::tempdir().expect("a folder");
        let bound = bound(&files, folder.path());
        let firmware =
            Firmware { board: Board::Mps2An385, attune: &files, project: &PROJECT, flags: &[] };
        let image = firmware.build(folder.path()).unwrap_or_else(|error| panic!("{error}"));
        let outcome = image.run(0).expect("it runs");
        assert_eq!(outcome.status, Some(0), "{policy}: {}", outcome.said);
        let used = outcome.said.lines().filter_map(|line| line.strip_prefix("used "));
        let used: Vec<u32> = used.map(|bytes| bytes.parse().expect("a number")).collect();
        let most = used.iter().copied().max().unwrap_or(0);
        println!("{policy}: at most {most} of {bound} bytes");
        assert_eq!(used.len(), 3, "{}", outcome.said);
        assert!(most <= bound, "{policy}: {used:?}, and the bound is {bound}");
        // A bound that no thread comes near would be no bound of this firmware.
        assert!(most * 10 > bound * 4, "{policy}: {used:?}, and the bound is {bound}");
    }
}
