//! Hands on a keyboard and a pointer, faked by XTEST, and the windows that they find.

use anyhow::{Context, Result};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{
    AtomEnum, ClientMessageEvent, ConnectionExt as _, EventMask, MapState, Window,
};
use x11rb::protocol::xtest::ConnectionExt as _;
use x11rb::rust_connection::RustConnection;

use super::display::{connect, reply, until};
use crate::running::Running;

/// Keys of X: their symbols. Those of ASCII are its codes.
pub const RETURN: u32 = 0xff0d;
pub const ESCAPE: u32 = 0xff1b;
pub const ALT: u32 = 0xffe9;

/// Kinds of XTEST events.
pub const KEY_PRESS: u8 = 2;
pub const KEY_RELEASE: u8 = 3;
pub const BUTTON_PRESS: u8 = 4;
pub const BUTTON_RELEASE: u8 = 5;
pub const MOTION: u8 = 6;

/// Levels of windows, from the root's children down, in which a program's own lies.
const LEVELS: usize = 4;
/// What a window manager is asked for by a program that a person chooses windows with.
const OF_A_PERSON: u32 = 2;
const ADD: u32 = 1;

pub struct Hands {
    pub connection: RustConnection,
    pub root: Window,
    codes: Vec<(u32, u8)>,
}

impl Hands {
    pub fn at(display: &str) -> Result<Hands> {
        let (connection, root) = connect(display)?;
        let codes = codes(&connection)?;
        Ok(Hands { connection, root, codes })
    }

    pub fn fake(&self, kind: u8, detail: u8, x: i16, y: i16) -> Result<()> {
        self.connection.xtest_fake_input(kind, detail, 0, self.root, x, y, 0)?;
        Ok(self.connection.flush()?)
    }

    pub fn code(&self, symbol: u32) -> Result<u8> {
        let found = self.codes.iter().find(|(known, _)| *known == symbol);
        Ok(found.with_context(|| format!("no key has the symbol {symbol:#x}"))?.1)
    }

    /// Presses a key and lets it go.
    pub fn key(&self, symbol: u32) -> Result<()> {
        let code = self.code(symbol)?;
        self.fake(KEY_PRESS, code, 0, 0)?;
        self.fake(KEY_RELEASE, code, 0, 0)
    }

    /// The window that can be seen and whose class or name for its class holds that word.
    pub fn wait_for(&self, class: &str) -> Result<Window> {
        self.wait_while(class, || Ok(()))
    }

    /// The same for a window of that program. Err: the program has ended, and what it said.
    pub fn wait_for_window_of(&self, program: &mut Running, class: &str) -> Result<Window> {
        self.wait_while(class, || program.lives())
    }

    fn wait_while(&self, class: &str, mut lives: impl FnMut() -> Result<()>) -> Result<Window> {
        let mut found = None;
        until(&format!("no window of class {class} has come"), || {
            lives()?;
            found = find(&self.connection, self.root, class, LEVELS)?;
            Ok(found.is_some())
        })?;
        found.context("it has gone again")
    }

    /// Asks the window manager to let a window cover the screen.
    pub fn make_full(&self, window: Window) -> Result<()> {
        let full = self.atom("_NET_WM_STATE_FULLSCREEN")?;
        self.ask_manager(window, "_NET_WM_STATE", [ADD, full, 0, OF_A_PERSON, 0])
    }

    /// Lets the window manager put a window on top and give it the focus, and sees it come.
    pub fn turn_to(&self, window: Window) -> Result<()> {
        const ACTIVE: &str = "_NET_ACTIVE_WINDOW";
        self.ask_manager(window, ACTIVE, [OF_A_PERSON, 0, 0, 0, 0])?;
        let property = self.atom(ACTIVE)?;
        until("the window manager gives a window no focus", || {
            let ask =
                self.connection.get_property(false, self.root, property, AtomEnum::WINDOW, 0, 1);
            Ok(reply!(ask).value32().and_then(|mut values| values.next()) == Some(window))
        })
    }

    fn ask_manager(&self, window: Window, what: &str, words: [u32; 5]) -> Result<()> {
        let event = ClientMessageEvent::new(32, window, self.atom(what)?, words);
        let to = EventMask::SUBSTRUCTURE_REDIRECT | EventMask::SUBSTRUCTURE_NOTIFY;
        self.connection.send_event(false, self.root, to, event)?;
        Ok(self.connection.flush()?)
    }

    fn atom(&self, name: &str) -> Result<u32> {
        Ok(reply!(self.connection.intern_atom(false, name.as_bytes())).atom)
    }
}

/// A window that can be seen and whose class holds that word, down to so many levels.
fn find(
    connection: &RustConnection,
    above: Window,
    class: &str,
    levels: usize,
) -> Result<Option<Window>> {
    for window in reply!(connection.query_tree(above)).children {
        let property =
            connection.get_property(false, window, AtomEnum::WM_CLASS, AtomEnum::STRING, 0, 64)?;
        // It may go at any time.
        let Ok(property) = property.reply() else { continue };
        let named = String::from_utf8_lossy(&property.value).contains(class);
        let state = connection.get_window_attributes(window)?.reply();
        if named && state.is_ok_and(|state| state.map_state == MapState::VIEWABLE) {
            return Ok(Some(window));
        }
        if levels > 0
            && let Some(found) = find(connection, window, class, levels - 1)?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The code of each symbol that a key has without a modifier.
fn codes(connection: &RustConnection) -> Result<Vec<(u32, u8)>> {
    let (first, last) = (connection.setup().min_keycode, connection.setup().max_keycode);
    let map = reply!(connection.get_keyboard_mapping(first, last - first + 1));
    let each = usize::from(map.keysyms_per_keycode.max(1));
    let symbols = map.keysyms.chunks(each).map(|symbols| symbols[0]);
    Ok(symbols.zip(first..=last).collect())
}
