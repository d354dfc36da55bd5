//! The standard library compiles without a warning.

use std::fs;

use attune_backend_c::Options;

use crate::support::{c_of, checked, complaints, schedulers_folder};

#[test]
fn the_library_compiles_without_warnings() {
    for entry in fs::read_dir(schedulers_folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "sched") {
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        let text = fs::read_to_string(&path).unwrap();
        if checked(&name, &text).program.is_none_or(|program| program.partial) {
            continue;
        }
        for (debug, compiler, flag) in [
            (false, "gcc", "-O1"),
            (true, "gcc", "-O0"),
            (false, "clang-19", "-O0"),
            (true, "clang-19", "-O0"),
        ] {
            let c = c_of(&name, &text, &Options { debug });
            assert_eq!(
                complaints(compiler, &[flag], &c),
                "",
                "{name} with {compiler}, debug {debug}"
            );
        }
    }
}
