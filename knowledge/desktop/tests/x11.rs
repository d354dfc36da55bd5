//! The X11 adapter against a real, unmodified server. Times on a busy machine say nothing: what is
//! asserted are counts and shares.

mod common;

use std::time::{Duration, Instant};

use attune_desktop::display::{Display, DisplayError};
use attune_desktop::observation::{Client, Input, Interaction};
use attune_desktop::x11::{InputSource, X11};
use attune_desktop::{Process, Settings, monitor};
use attune_linux::time::now;
use common::painter::Painter;
use common::{Desktop, HEIGHT, WIDTH, have, wait_for};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    ConfigureWindowAux, ConnectionExt as _, CreateWindowAux, Rectangle, StackMode, WindowClass,
};

/// What comes until `enough`, or for a while.
fn collect(display: &mut X11, enough: impl Fn(&[Input]) -> bool) -> Vec<Input> {
    let patience = Instant::now() + Duration::from_secs(90);
    let mut all = Vec::new();
    while !enough(&all) && Instant::now() < patience {
        all.extend(display.wait(now() + 100_000_000).unwrap());
    }
    all
}

fn of(inputs: &[Input], pid: u32, interaction: Interaction) -> usize {
    inputs.iter().filter(|one| one.process.pid == pid && one.interaction == interaction).count()
}

fn typing_is_counted_for_the_terminal(source: InputSource) {
    if !have(&["Xvfb", "openbox", "xterm", "xdotool"]) {
        return;
    }
    let mut desktop = Desktop::start();
    desktop.manage();
    // Its window is there first, or it would get the focus later.
    let other = desktop.terminal(&["sleep", "1000"]);
    let terminal = desktop.terminal(&["cat"]);
    let mut display = X11::connect(Some(&desktop.display), source).unwrap();
    let limited = display.limits().iter().any(|limit| limit.contains("not recorded"));
    assert_eq!(limited, source == InputSource::Raw);
    assert_eq!(display.servers()[0].pid, desktop.server());
    display.clients().unwrap();
    desktop.xdotool(&["type", "--delay", "20", "the quick brown fox"]);
    let inputs = collect(&mut display, |seen| of(seen, terminal, Interaction::Key) >= 19);
    assert_eq!(of(&inputs, terminal, Interaction::Key), 19, "{inputs:?}");
    assert_eq!(of(&inputs, other, Interaction::Key), 0);
    let focused: Vec<Process> = display
        .clients()
        .unwrap()
        .iter()
        .filter(|client| client.focused)
        .map(|client| client.process)
        .collect();
    assert_eq!(focused.iter().map(|process| process.pid).collect::<Vec<_>>(), [terminal]);
}

#[test]
fn keys_count_for_the_client_that_gets_them() {
    typing_is_counted_for_the_terminal(InputSource::Best);
}

#[test]
fn without_record_keys_count_for_the_focused_client() {
    typing_is_counted_for_the_terminal(InputSource::Raw);
}

#[test]
fn clicks_and_the_wheel_are_told_apart_and_what_a_client_sends_itself_is_no_input() {
    if !have(&["Xvfb", "xterm", "xdotool"]) {
        return;
    }
    let mut desktop = Desktop::start();
    let terminal = desktop.run("xterm", &["-geometry", "60x20+0+0", "-e", "cat"]);
    let window = wait_for("the terminal", || {
        let found = desktop.xdotool(&["search", "--onlyvisible", "--class", "xterm"]);
        found.lines().last().map(str::to_owned)
    });
    let mut display = X11::connect(Some(&desktop.display), InputSource::Best).unwrap();
    display.clients().unwrap();
    desktop.xdotool(&["mousemove", "100", "100", "click", "1", "click", "5"]);
    // With a window named, xdotool sends events instead of pressing keys.
    desktop.xdotool(&["key", "--window", &window, "a", "b", "c"]);
    desktop.xdotool(&["click", "1"]);
    let inputs = collect(&mut display, |seen| of(seen, terminal, Interaction::Click) >= 2);
    assert_eq!(of(&inputs, terminal, Interaction::Click), 2, "{inputs:?}");
    assert_eq!(of(&inputs, terminal, Interaction::Scroll), 1, "{inputs:?}");
    assert_eq!(of(&inputs, terminal, Interaction::Key), 0, "{inputs:?}");
}

fn own(clients: &[Client]) -> Client {
    let own = std::process::id();
    *clients.iter().find(|client| client.process.pid == own).expect("this process is a client")
}

fn pause(display: &mut X11) {
    display.wait(now() + 300_000_000).unwrap();
}

#[test]
fn a_client_has_the_part_of_the_screen_that_shows_it_and_that_it_changes() {
    if !have(&["Xvfb"]) {
        return;
    }
    let desktop = Desktop::start();
    let screen = f64::from(WIDTH) * f64::from(HEIGHT);
    let painter = Painter::show(&desktop.display, 100, 100, 200, 100);
    let mut display = X11::connect(Some(&desktop.display), InputSource::Best).unwrap();
    wait_for("the window", || {
        pause(&mut display);
        let shown = own(&display.clients().unwrap());
        assert_eq!(shown.changed, 0.0, "a window that was only watched has changed nothing");
        ((shown.visible - 20_000.0 / screen).abs() < 1e-9).then_some(())
    });

    // Fills the window until so many pixels are seen to change in some interval, spread over the
    // intervals that passed, which a busy machine miscounts, and so many are seen at all.
    let mut until_seen = |changed: f64, visible: f64| {
        wait_for("the pixels", || {
            let begin = Instant::now();
            display.clients().unwrap();
            painter.fill(Rectangle { x: 0, y: 0, width: 200, height: 100 });
            pause(&mut display);
            let shown = own(&display.clients().unwrap());
            let pixels = shown.changed * screen * begin.elapsed().as_secs_f64() / 0.04;
            let is_close = (pixels - changed).abs() <= changed * 0.35;
            (is_close && (shown.visible * screen - visible).abs() < 1.0).then_some(())
        });
    };
    until_seen(20_000.0, 20_000.0);

    // Another client covers the left half.
    let cover = Painter::show(&desktop.display, 0, 0, 200, 600);
    until_seen(10_000.0, 10_000.0 + 120_000.0);

    // Below it, nothing is left to see.
    let lower = ConfigureWindowAux::new().stack_mode(StackMode::ABOVE).x(0).y(0).width(800);
    cover.connection.configure_window(cover.window, &lower).unwrap();
    cover.connection.flush().unwrap();
    until_seen(0.0, screen);
}

/// Asking for all windows makes the server work while others wait for it.
#[test]
fn a_window_that_is_dragged_is_followed_without_asking_for_all_windows() {
    if !have(&["Xvfb"]) {
        return;
    }
    let desktop = Desktop::start();
    let screen = f64::from(WIDTH) * f64::from(HEIGHT);
    let painter = Painter::show(&desktop.display, 0, 100, 200, 100);
    let mut display = X11::connect(Some(&desktop.display), InputSource::Best).unwrap();
    let mut until_visible = |pixels: f64| {
        wait_for("the window", || {
            pause(&mut display);
            let shown = own(&display.clients().unwrap());
            ((shown.visible * screen - pixels).abs() < 1.0).then_some(display.walks())
        })
    };
    let (before, begin) = (until_visible(20_000.0), Instant::now());
    let mut walks = before;
    // Out of the screen for the half of it, and back: each place is seen.
    for x in [100, WIDTH as i32 - 100, 50, -100, 0] {
        let place = ConfigureWindowAux::new().x(x).y(150);
        painter.connection.configure_window(painter.window, &place).unwrap();
        painter.connection.flush().unwrap();
        let is_cut = x < 0 || x > WIDTH as i32 - 200;
        walks = until_visible(if is_cut { 10_000.0 } else { 20_000.0 });
    }
    // A walk every five seconds comes anyway.
    let others = begin.elapsed().as_secs() / 5 + 1;
    assert!(walks - before <= others, "{} walks, {others} by the clock", walks - before);
}

#[test]
fn a_client_inside_a_window_managers_frame_is_counted_once() {
    if !have(&["Xvfb", "openbox", "xterm", "xdotool"]) {
        return;
    }
    let mut desktop = Desktop::start();
    desktop.manage();
    let terminal =
        desktop.terminal(&["sh", "-c", "while :; do echo a line of text; sleep 0.05; done"]);
    let mut display = X11::connect(Some(&desktop.display), InputSource::Best).unwrap();
    let (clients, xterm) = wait_for("lines in the terminal", || {
        pause(&mut display);
        let clients = display.clients().unwrap();
        let xterm = *clients.iter().find(|client| client.process.pid == terminal)?;
        (xterm.visible > 0.1 && xterm.changed > 0.0).then_some((clients, xterm))
    });
    // The window manager's frame, title and all, counts for nobody else.
    let visible: f64 = clients.iter().map(|client| client.visible).sum();
    let changed: f64 = clients.iter().map(|client| client.changed).sum();
    assert!(visible < 1.05 * xterm.visible, "{clients:?}");
    assert!(changed < 1.05 * xterm.changed, "{clients:?}");
}

#[test]
fn a_storm_of_windows_and_clients_that_come_and_go_do_no_harm() {
    if !have(&["Xvfb", "xterm"]) {
        return;
    }
    let mut desktop = Desktop::start();
    let mut display = X11::connect(Some(&desktop.display), InputSource::Best).unwrap();
    let painter = Painter::show(&desktop.display, 0, 0, 50, 50);
    for round in 0..20 {
        for _ in 0..50 {
            let window = painter.connection.generate_id().unwrap();
            let class = WindowClass::INPUT_OUTPUT;
            let root = painter.connection.setup().roots[0].root;
            let plain = CreateWindowAux::new().override_redirect(1);
            let connection = &painter.connection;
            connection.create_window(0, window, root, 5, 5, 9, 9, 0, class, 0, &plain).unwrap();
            connection.map_window(window).unwrap();
            if round % 2 == 0 {
                connection.destroy_window(window).unwrap();
            }
        }
        painter.connection.flush().unwrap();
        display.wait(now() + 20_000_000).unwrap();
        let xterm = desktop.run("xterm", &["-e", "sleep", "1000"]);
        display.wait(now() + 20_000_000).unwrap();
        desktop.end(xterm);
    }
    let left = wait_for("only this test", || {
        pause(&mut display);
        let clients = display.clients().unwrap();
        (clients.len() == 1).then_some(clients)
    });
    own(&left);
}

#[test]
fn a_server_that_dies_is_said_to_be_gone_and_found_again_when_it_is_back() {
    if !have(&["Xvfb", "xterm", "xdotool"]) {
        return;
    }
    let mut desktop = Desktop::start();
    let display = desktop.display.clone();
    let connect = {
        let display = display.clone();
        Box::new(move || {
            let x11 = X11::connect(Some(&display), InputSource::Best)?;
            Ok(Box::new(x11) as Box<dyn Display>)
        })
    };
    let mut monitor =
        monitor::Monitor::start(connect, None, Settings::default(), &mut |_| ()).unwrap();
    desktop.kill_server();
    let news = wait_for("the news", || monitor.step(u64::MAX, &mut |_| ()));
    assert!(matches!(news, monitor::News::Gone(DisplayError::Gone { .. })), "{news:?}");
    let mut desktop = Desktop::start_as(&[&display]);
    wait_for("the display", || match monitor.step(u64::MAX, &mut |_| ()) {
        Some(monitor::News::Back) => Some(()),
        _ => None,
    });
    let terminal = desktop.run("xterm", &["-geometry", "60x20+0+0", "-e", "cat"]);
    wait_for("a rating from the new server", || {
        desktop.xdotool(&["mousemove", "100", "100", "click", "1"]);
        monitor.step(u64::MAX, &mut |_| ());
        let mut rated = monitor.attention().rated().iter();
        rated
            .any(|(process, rated)| process.pid == terminal && rated.input.value > 4.0)
            .then_some(())
    });
}

#[test]
fn a_display_that_is_not_there_is_named() {
    let error = X11::connect(Some(":4711"), InputSource::Best).err().unwrap().to_string();
    assert!(error.contains("cannot connect to the display :4711"), "{error}");
}
