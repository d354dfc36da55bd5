//! The standard library and the language reference's examples compile without a warning.

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
        for debug in [false, true] {
            let c = c_of(&name, &text, &Options { debug });
            for compiler in ["gcc", "clang-19"] {
                assert_eq!(complaints(compiler, &["-O1"], &c), "", "{name} with {compiler}, debug {debug}");
            }
        }
    }
}
