//! The display on which the programs are: waits for a window manager, and for windows.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _, MapState, Window};
use x11rb::rust_connection::RustConnection;

/// For what is to come: a browser on a small CPU beside others takes minutes.
pub const BEGIN: Duration = Duration::from_secs(300);

/// The answer of a `Connection` that must be there.
macro_rules! reply {
    ($request:expr) => {
        $request?.reply()?
    };
}
pub(super) use reply;

pub fn connect(display: &str) -> Result<(RustConnection, Window)> {
    let (connection, screen) = x11rb::connect(Some(display)).context("no display")?;
    let root = connection.setup().roots[screen].root;
    Ok((connection, root))
}

/// Waits until a window manager says that it is there.
pub fn wait_for_manager(display: &str) -> Result<()> {
    let (connection, root) = connect(display)?;
    let atom = reply!(connection.intern_atom(false, b"_NET_SUPPORTING_WM_CHECK")).atom;
    until("there is no window manager", || {
        Ok(reply!(connection.get_property(false, root, atom, AtomEnum::ANY, 0, 1)).value_len > 0)
    })
}

/// Waits until so many windows are on the screen.
pub fn wait_for_windows(display: &str, count: usize) -> Result<()> {
    let (connection, root) = connect(display)?;
    until("a program shows no window", || {
        let mut shown = 0;
        for window in reply!(connection.query_tree(root)).children {
            // One that is gone meanwhile is not shown.
            let attributes = connection.get_window_attributes(window)?.reply();
            shown += usize::from(attributes.is_ok_and(|it| it.map_state == MapState::VIEWABLE));
        }
        Ok(shown >= count)
    })
}

/// Err: it did not hold within [`BEGIN`]; `missing` says what that means.
pub fn until(missing: &str, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let end = Instant::now() + BEGIN;
    while !holds()? {
        ensure!(Instant::now() < end, "{missing}");
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
