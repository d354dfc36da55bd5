//! The terminal while `attune top` has it: an own screen, keys without a return key, and everything
//! as it was in the end.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::style::{Attribute, Print, SetAttribute};
use crossterm::terminal::{self, ClearType};
use crossterm::{cursor, execute, queue};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::table::Line;

/// How often it is looked whether somebody has sent a signal.
const LOOK: Duration = Duration::from_millis(100);

/// Dropping it gives the terminal back.
pub struct Screen {
    lines: Vec<Line>,
    /// What is shown at the top and on the left.
    top: usize,
    left: usize,
    stop: Arc<AtomicBool>,
}

impl Screen {
    pub fn open() -> io::Result<Screen> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, stop.clone())?;
        }
        terminal::enable_raw_mode()?;
        // From here on there is something to give back, also if the rest fails.
        let screen = Screen { lines: Vec::new(), top: 0, left: 0, stop };
        execute!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        Ok(screen)
    }

    pub fn show(&mut self, lines: &[Line]) -> io::Result<()> {
        self.lines = lines.to_vec();
        self.draw()
    }

    /// Follows the keys for so long. True: the person wants to leave.
    pub fn wait(&mut self, interval: Duration) -> io::Result<bool> {
        let until = Instant::now() + interval;
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(true);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            if !event::poll(left.min(LOOK))? {
                continue;
            }
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    if self.is_end(key) {
                        return Ok(true);
                    }
                    self.draw()?;
                }
                Event::Resize(..) => self.draw()?,
                _ => {}
            }
        }
    }

    /// Moves what is shown, or says that the person wants to leave.
    fn is_end(&mut self, key: KeyEvent) -> bool {
        let page = size().1.saturating_sub(2);
        match (key.code, key.modifiers) {
            (KeyCode::Char('q') | KeyCode::Esc, _)
            | (KeyCode::Char('c'), KeyModifiers::CONTROL) => {
                return true;
            }
            (KeyCode::Up, _) => self.top = self.top.saturating_sub(1),
            (KeyCode::Down, _) => self.top += 1,
            (KeyCode::PageUp, _) => self.top = self.top.saturating_sub(page),
            (KeyCode::PageDown, _) => self.top += page,
            (KeyCode::Home, _) => (self.top, self.left) = (0, 0),
            (KeyCode::End, _) => self.top = self.lines.len(),
            (KeyCode::Left, _) => self.left = self.left.saturating_sub(8),
            (KeyCode::Right, _) => self.left += 8,
            _ => {}
        }
        false
    }

    fn draw(&mut self) -> io::Result<()> {
        let (columns, rows) = size();
        let room = rows.saturating_sub(1);
        let widest = self.lines.iter().map(|line| line.text.chars().count()).max().unwrap_or(0);
        self.top = self.top.min(self.lines.len().saturating_sub(room));
        self.left = self.left.min(widest.saturating_sub(columns));
        let mut out = io::BufWriter::new(io::stdout().lock());
        for (row, line) in self.lines.iter().skip(self.top).take(room).enumerate() {
            let text: String = line.text.chars().skip(self.left).take(columns).collect();
            let weight = if line.heading { Attribute::Bold } else { Attribute::Reset };
            queue!(out, cursor::MoveTo(0, row as u16), SetAttribute(weight), Print(text))?;
            queue!(out, SetAttribute(Attribute::Reset), terminal::Clear(ClearType::UntilNewLine))?;
        }
        queue!(out, terminal::Clear(ClearType::FromCursorDown))?;
        let keys: String =
            "q: leave   arrows, page up and down: move".chars().take(columns).collect();
        queue!(out, cursor::MoveTo(0, room as u16), SetAttribute(Attribute::Dim), Print(keys))?;
        queue!(out, SetAttribute(Attribute::Reset), terminal::Clear(ClearType::UntilNewLine))?;
        out.flush()
    }
}

/// Columns and rows; the usual ones of a terminal that does not know.
fn size() -> (usize, usize) {
    match terminal::size() {
        Ok((columns, rows)) if columns > 0 && rows > 0 => (columns as usize, rows as usize),
        _ => (80, 24),
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone cannot be given back.
        let _ = execute!(io::stdout(), cursor::Show, terminal::LeaveAlternateScreen);
        let _ = terminal::disable_raw_mode();
    }
}
