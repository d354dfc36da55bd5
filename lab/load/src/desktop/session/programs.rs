//! The programs of a session.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

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
pub const WINDOWS: [Program; 11] = [
    typed(
        "libreoffice",
        "/usr/lib/libreoffice/program/oosplash --writer --norestore --nologo \
         -env:UserInstallation=file://{home}/office",
        TEXT,
    ),
    watched(
        "firefox",
        "/usr/lib/firefox-esr/firefox-esr --no-remote --profile {home}/browser {home}/page.html",
    ),
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

/// A page on which a square moves all the time.
const PAGE: &str = "<!doctype html><title>a square</title>
<div style='position: absolute; top: 40px; width: 120px; height: 120px; background: #36c'></div>
<script>
    const square = document.querySelector('div');
    let x = 0;
    function step() {
        x = (x + 4) % 360;
        square.style.left = x + 'px';
        requestAnimationFrame(step);
    }
    step();
</script>
";

/// The browser shows the page alone, and asks nobody for news: whatever it wants from elsewhere it
/// wants from a proxy that is not there.
const BROWSER: &str = "user_pref('browser.aboutwelcome.enabled', false);
user_pref('browser.shell.checkDefaultBrowser', false);
user_pref('browser.startup.homepage_override.mstone', 'ignore');
user_pref('datareporting.policy.dataSubmissionEnabled', false);
user_pref('network.proxy.type', 1);
user_pref('network.proxy.http', '127.0.0.1');
user_pref('network.proxy.http_port', 9);
user_pref('network.proxy.ssl', '127.0.0.1');
user_pref('network.proxy.ssl_port', 9);
user_pref('toolkit.telemetry.reportingpolicy.firstRun', false);
";

/// Writes what the programs read into their home.
pub fn furnish(home: &Path) -> Result<()> {
    let browser = home.join("browser");
    fs::create_dir(&browser)
        .and_then(|()| fs::write(browser.join("user.js"), BROWSER))
        .and_then(|()| fs::write(home.join("page.html"), PAGE))
        .with_context(|| format!("writing below {}", home.display()))
}

/// Runs all the time, and nobody waits for it; beside it one process computes.
pub const COMPILE: &str = "attune-load compile --count 1000000 --at-once 1";

const fn typed(name: &'static str, words: &'static str, keys: &'static [u32]) -> Program {
    Program { name, words, attention: Attention::Types(keys) }
}

const fn watched(name: &'static str, words: &'static str) -> Program {
    Program { name, words, attention: Attention::Watches }
}
