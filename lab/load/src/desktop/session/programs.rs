//! The twelve programs of a session.

use super::super::hands::RETURN;

/// A program with a window.
pub struct Program {
    /// A word of its window's class or name.
    pub name: &'static str,
    /// `{film}` stands for a film's file, `{home}` for a folder that is gone afterwards.
    pub words: &'static str,
    /// What the person does who turns to it.
    pub attention: Attention,
}

pub enum Attention {
    /// Types these keys again and again.
    Types(&'static [u32]),
    Watches,
}

const UP: u32 = 0xff52;
const LEFT: u32 = 0xff51;

const TEXT: &[u32] = &[
    b't' as u32,
    b'h' as u32,
    b'e' as u32,
    b' ' as u32,
    b's' as u32,
    b'u' as u32,
    b'n' as u32,
    RETURN,
];
const COMMAND: &[u32] = &[b'p' as u32, b'w' as u32, b'd' as u32, RETURN];
const LINES: &[u32] = &[b'j' as u32, b'j' as u32, b'j' as u32, b'k' as u32];
const STEPS: &[u32] = &[UP, UP, LEFT];

/// Each covers the screen when the person turns to it.
pub const WINDOWS: [Program; 9] = [
    typed("at-vim", "xterm -name at-vim -e vim -u NONE +startinsert", TEXT),
    // It saves what was typed when it is ended.
    typed("at-nano", "xterm -name at-nano -e nano {home}/text", TEXT),
    typed("at-less", "xterm -name at-less -e less /usr/share/X11/xkb/rules/base.lst", LINES),
    // The shell runs when a line is full.
    typed("at-shell", "xterm -name at-shell -e sh", COMMAND),
    typed("emacs", "emacs -Q --no-splash", TEXT),
    typed(
        "chocolate-doom",
        "/usr/games/chocolate-doom -iwad /usr/share/games/doom/freedoom1.wad -nosound \
         -nograbmouse -window -geometry 320x240 -nomonsters -warp 1 1",
        STEPS,
    ),
    watched("at-top", "xterm -name at-top -e top -d 0.5"),
    // With one window for as often as it plays the film.
    watched(
        "MPlayer",
        "mplayer -really-quiet -noconsolecontrols -vo x11 -ao null -framedrop -fixed-vo -loop 0 \
         {film}",
    ),
    watched("mpv", "mpv --no-config --no-terminal --vo=x11 --ao=null --loop {film}"),
];

/// Runs all the time, and nobody waits for it; beside it one process computes.
pub const COMPILE: &str = "attune-load compile --count 1000000 --at-once 1";

const fn typed(name: &'static str, words: &'static str, keys: &'static [u32]) -> Program {
    Program { name, words, attention: Attention::Types(keys) }
}

const fn watched(name: &'static str, words: &'static str) -> Program {
    Program { name, words, attention: Attention::Watches }
}
