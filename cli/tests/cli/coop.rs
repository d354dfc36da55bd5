//! `attune coop run`: the command is the program with the library in it. `attune coop status`.

use std::path::Path;

use crate::support::{ATTUNE, Folder, err, out, status};

#[test]
fn the_command_has_the_library_and_the_transport() {
    let folder = Folder::new("coop");
    let library = Path::new(ATTUNE).with_file_name("libattune_coop_preload.so");
    assert!(
        library.exists(),
        "cargo build -p attune-coop-preload comes first; make test builds the workspace"
    );
    let show = "echo $LD_PRELOAD $ATTUNE_COOP; exit 7";
    let run = ["coop", "run", "--transport", "shared:/tmp/x", "--", "sh", "-c", show];
    let done = folder.attune(&run);
    assert_eq!((status(&done), err(&done)), (7, ""));
    assert_eq!(out(&done), format!("{} shared:/tmp/x\n", library.display()));
    assert_eq!(status(&folder.attune(&["coop", "run", "--", "/no/such/program"])), 127);
    let loud = ["coop", "run", "--transport", "loud", "--", "true"];
    folder.refused(&loud, "no transport `loud`");
    let help = folder.attune(&["coop", "run", "--help"]);
    assert!(out(&help).contains("attune coop run -- Xvfb :9"));
}

#[test]
fn status_tells_whether_cooperation_is_in_force() {
    let folder = Folder::new("coop-status");
    let status_of = |transport: Option<&str>| {
        let mut command = folder.command(&["coop", "status"]);
        // No scheduler listens there.
        command.env("ATTUNE_VALUES", folder.0.join("values")).env_remove("ATTUNE_COOP");
        command.envs(transport.map(|transport| ("ATTUNE_COOP", transport)));
        command.output().unwrap()
    };
    let nothing = status_of(None);
    assert!(out(&nothing).starts_with("none: programs that start now do not cooperate"));
    assert!(out(&nothing).contains("attune run coop --all"), "{nothing:?}");
    let shared = status_of(Some(&format!("shared:{}", folder.0.join("session").display())));
    assert!(out(&shared).starts_with("shared: "), "{shared:?}");
    folder.refused(&["coop", "status", "--transport", "loud"], "no transport `loud`");
}
