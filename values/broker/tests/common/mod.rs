//! What tests with sockets of several users need.

#![allow(dead_code)] // Each test file uses a part of it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use attune_linux::process;
use attune_values::socket::{Connection, Received};
use attune_values::wire::{Reply, Request, VERSION};

pub const PATIENCE: Duration = Duration::from_secs(90);

pub fn connect(socket: &Path) -> Connection {
    Connection::to(socket, PATIENCE).unwrap()
}

/// Whether the test can connect as another user; says why not.
pub fn is_root() -> bool {
    let root = process::effective_user() == 0;
    if !root {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "this test needs root");
        eprintln!("not tested: only root can connect as another user");
    }
    root
}

/// The calling thread connects as that user from now on.
pub fn become_user(user: u32) {
    let user = Some(rustix::process::Uid::from_raw(user));
    rustix::thread::set_thread_res_uid(user, user, user).unwrap();
}

/// A socket's place that every user reaches, and its folder.
pub fn open_to_all() -> (tempfile::TempDir, PathBuf) {
    process::raise_descriptor_limit(0);
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let socket = folder.path().join("values");
    (folder, socket)
}

/// An honest client still gets its page.
pub fn all_is_well(socket: &Path) {
    let connection = connect(socket);
    connection.send(&Request::Hello { version: VERSION }, None).unwrap();
    assert!(matches!(connection.receive(), Ok(Received::Message(Reply::Welcome { .. }, Some(_)))));
    connection.send(&Request::Declare { word: 1, name: "urgent".to_owned() }, None).unwrap();
    assert!(matches!(connection.receive(), Ok(Received::Message(Reply::Done, _))));
}
