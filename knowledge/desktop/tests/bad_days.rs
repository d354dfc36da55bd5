//! The X11 adapter with clients and displays that are unusual, or that mean no good.

mod common;

use std::io::IoSlice;

use attune_desktop::Process;
use attune_desktop::display::Display;
use attune_desktop::observation::{Client, Interaction};
use attune_desktop::x11::{InputSource, X11};
use attune_linux::time::now;
use common::painter::Painter;
use common::{Desktop, HEIGHT, WIDTH, cannot_run, child_of, have, wait_for};
use x11rb::connection::{Connection, RequestConnection};
use x11rb::protocol::composite::{ConnectionExt as _, Redirect};
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _, GrabMode, PropMode, Rectangle};
use x11rb::wrapper::ConnectionExt as _;

const ALL: Rectangle = Rectangle { x: 0, y: 0, width: 200, height: 100 };
const PIXELS: f64 = 20_000.0;

fn connect(display: &str) -> X11 {
    X11::connect(Some(display), InputSource::Best).unwrap()
}

fn pause(display: &mut X11) {
    display.wait(now() + 100_000_000).unwrap();
}

fn of(clients: &[Client], pid: u32) -> Option<Client> {
    clients.iter().find(|client| client.process.pid == pid).copied()
}

/// Draws and looks until this process is seen to change something.
fn changes(display: &mut X11, mut draw: impl FnMut()) -> Client {
    wait_for("a change", || {
        draw();
        pause(display);
        of(&display.clients().unwrap(), std::process::id()).filter(|client| client.changed > 0.0)
    })
}

/// Drawing that does not come as a request to draw: a picture that the server is handed whole, as
/// players and games do it in full screen, too.
#[test]
fn pictures_of_the_present_extension_count() {
    if !have(&["Xvfb"]) {
        return;
    }
    let desktop = Desktop::start();
    let painter = Painter::show(&desktop.display, 0, 0, WIDTH, HEIGHT);
    let (connection, window) = (&painter.connection, painter.window);
    let picture = connection.generate_id().unwrap();
    connection.create_pixmap(24, picture, window, WIDTH, HEIGHT).unwrap();
    let extension = connection.query_extension(b"Present").unwrap().reply().unwrap();
    // The request's number, and its length in words of four bytes.
    let present = extension.major_opcode;
    let mut display = connect(&desktop.display);
    pause(&mut display);
    display.clients().unwrap();
    let seen = changes(&mut display, || {
        let nothing = [0; 48];
        let words = [u32::from_ne_bytes([present, 1, 18, 0]), window, picture, 1, 0, 0];
        let words: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
        let request = [IoSlice::new(&words), IoSlice::new(&nothing)];
        connection.send_request_without_reply(&request, Vec::new()).unwrap().check().unwrap();
    });
    assert!(seen.visible > 0.99, "{seen:?}");
}

#[test]
fn under_a_compositor_a_covered_client_changes_nothing() {
    if !have(&["Xvfb"]) {
        return;
    }
    let desktop = Desktop::start();
    let lower = Painter::show(&desktop.display, 0, 0, 200, 100);
    let root = lower.connection.setup().roots[0].root;
    // From now on the server draws all of a window, covered or not.
    let redirected = lower.connection.composite_redirect_subwindows(root, Redirect::AUTOMATIC);
    redirected.unwrap().check().unwrap();
    let mut display = connect(&desktop.display);
    changes(&mut display, || lower.fill(ALL));
    let mut desktop = desktop;
    let cover = desktop.run("xterm", &["-geometry", "130x50+0+0", "-e", "sleep", "1000"]);
    wait_for("the cover", || {
        pause(&mut display);
        let own = of(&display.clients().unwrap(), std::process::id())?;
        (own.visible == 0.0).then_some(())
    });
    for _ in 0..5 {
        lower.fill(ALL);
        pause(&mut display);
        let clients = display.clients().unwrap();
        assert_eq!(of(&clients, std::process::id()).unwrap().changed, 0.0);
        assert!(of(&clients, cover).is_some_and(|cover| cover.visible > 0.5));
    }
}

#[test]
fn each_screen_of_a_display_counts() {
    if !have(&["Xvfb"]) {
        return;
    }
    let second = ["-screen", "1", "400x300x24", "-nolisten", "tcp"];
    let desktop = Desktop::start_with(&["-displayfd", "1"], &second);
    let all = f64::from(WIDTH) * f64::from(HEIGHT) + 400.0 * 300.0;
    let mut display = connect(&desktop.display);
    let painter = Painter::show(&format!("{}.1", desktop.display), 300, 250, 200, 100);
    let seen = changes(&mut display, || painter.fill(ALL));
    // Half of its width and half of its height lie outside of that screen.
    assert!((seen.visible * all - PIXELS / 4.0).abs() < 0.5, "{seen:?}");
    // A window at the same place of the other screen covers nothing of it.
    let _other = Painter::show(&desktop.display, 300, 250, 200, 100);
    wait_for("both windows", || {
        pause(&mut display);
        let seen = of(&display.clients().unwrap(), std::process::id())?;
        ((seen.visible * all - PIXELS * 1.25).abs() < 0.5).then_some(())
    });
}

#[test]
fn a_client_that_claims_another_process_is_rated_as_what_it_is() {
    if !have(&["Xvfb"]) {
        return;
    }
    let mut desktop = Desktop::start();
    let victim = desktop.run("sleep", &["1000"]);
    let painter = Painter::show(&desktop.display, 0, 0, 200, 100);
    let connection = &painter.connection;
    let name = connection.intern_atom(false, b"_NET_WM_PID").unwrap().reply().unwrap().atom;
    connection
        .change_property32(PropMode::REPLACE, painter.window, name, AtomEnum::CARDINAL, &[victim])
        .unwrap();
    let mut display = connect(&desktop.display);
    changes(&mut display, || painter.fill(ALL));
    assert_eq!(of(&display.clients().unwrap(), victim), None);
}

#[test]
fn below_a_screen_locker_nothing_is_seen_and_nothing_typed_into() {
    if !have(&["Xvfb", "xterm", "xdotool"]) {
        return;
    }
    let mut desktop = Desktop::start();
    let terminal = desktop.terminal(&["sh", "-c", "while :; do echo words; sleep 0.05; done"]);
    let mut display = connect(&desktop.display);
    wait_for("the terminal's words", || {
        pause(&mut display);
        of(&display.clients().unwrap(), terminal).filter(|client| client.changed > 0.0)
    });
    let locker = Painter::show(&desktop.display, 0, 0, WIDTH, HEIGHT);
    let connection = &locker.connection;
    let grabbed = connection.grab_keyboard(
        true,
        locker.window,
        x11rb::CURRENT_TIME,
        GrabMode::ASYNC,
        GrabMode::ASYNC,
    );
    grabbed.unwrap().reply().unwrap();
    wait_for("the lock", || {
        pause(&mut display);
        let hidden = of(&display.clients().unwrap(), terminal)?;
        (hidden.visible == 0.0).then_some(())
    });
    desktop.xdotool(&["type", "--delay", "20", "password"]);
    let mut inputs = Vec::new();
    wait_for("the keys", || {
        inputs.extend(display.wait(now() + 100_000_000).unwrap());
        let keys = inputs.iter().filter(|input| input.interaction == Interaction::Key);
        (keys.count() >= 8).then_some(())
    });
    assert!(inputs.iter().all(|input| input.process.pid == std::process::id()), "{inputs:?}");
    assert_eq!(of(&display.clients().unwrap(), terminal).unwrap().changed, 0.0);
}

#[test]
fn a_remote_client_covers_others_and_is_rated_as_nobody() {
    if !have(&["Xvfb", "xterm"]) {
        return;
    }
    let mut desktop = Desktop::start_with(&["-displayfd", "1"], &["-listen", "tcp"]);
    let mut display = connect(&desktop.display);
    // By way of TCP, as from another machine: the server knows no process behind it.
    let remote = Painter::show(&format!("127.0.0.1{}", desktop.display), 0, 0, WIDTH, HEIGHT);
    let terminal = desktop.run("xterm", &["-geometry", "20x5+0+0", "-e", "sleep", "1000"]);
    wait_for("the terminal", || {
        pause(&mut display);
        of(&display.clients().unwrap(), terminal).filter(|client| client.visible > 0.0)
    });
    let above = x11rb::protocol::xproto::ConfigureWindowAux::new()
        .stack_mode(x11rb::protocol::xproto::StackMode::ABOVE);
    remote.connection.configure_window(remote.window, &above).unwrap();
    remote.connection.flush().unwrap();
    let clients = wait_for("the remote window above it", || {
        remote.fill(ALL);
        pause(&mut display);
        let clients = display.clients().unwrap();
        of(&clients, terminal).is_some_and(|client| client.visible == 0.0).then_some(clients)
    });
    assert_eq!(of(&clients, std::process::id()), None, "{clients:?}");
}

#[test]
fn a_client_in_a_process_namespace_of_its_own_has_its_number_outside() {
    if !have(&["Xvfb", "xterm", "unshare"]) {
        return;
    }
    if attune_linux::process::effective_user() != 0 {
        return cannot_run("a process namespace needs root");
    }
    let mut desktop = Desktop::start();
    let outside = desktop.run("unshare", &["--pid", "--fork", "--kill-child", "xterm"]);
    let terminal: Process = child_of(outside, "xterm");
    let mut display = connect(&desktop.display);
    wait_for("the terminal", || {
        pause(&mut display);
        let clients = display.clients().unwrap();
        clients
            .iter()
            .any(|client| client.process == terminal && client.visible > 0.0)
            .then_some(())
    });
}
