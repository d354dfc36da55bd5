//! Sound through PipeWire without real-time priority: a sink that nobody hears and whose clock
//! wakes the server for each buffer, and a player of silence, linked to it. No session manager
//! runs; pipewire-pulse is there to tell a monitor which streams play.
//!
//! A buffer is `late` (an xrun) if filling it takes longer than it lasts: from the clock's
//! interrupt, which wakes the server, until both the server and the player, which the server wakes
//! for it, sleep again.

use std::fs::{self, File};
use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use attune_linux::procfs;
use serde_json::{Value, json};

use crate::numbers;
use crate::running::{Environment, Folder, Running};
use crate::tracer::line::Line;

/// Frames a second.
const RATE: u32 = 48_000;
/// Bytes of a frame: two channels of two bytes.
const FRAME: u32 = 4;
/// Longer than any run.
const SILENCE_SECONDS: u32 = 600;
/// For the player's and the sink's ports to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// `{}` stands for a buffer's frames, which PipeWire else rounds to a power of two. Its module for
/// real-time priority (module-rt) is left out.
const SERVER: &str = r#"
context.properties = {
    core.daemon = true
    core.name = pipewire-0
    mem.allow-mlock = false
    clock.power-of-two-quantum = false
    default.clock.rate = 48000
    default.clock.quantum = {}
    default.clock.min-quantum = {}
    default.clock.max-quantum = {}
}
context.spa-libs = {
    audio.convert.* = audioconvert/libspa-audioconvert
    support.* = support/libspa-support
}
context.modules = [
    { name = libpipewire-module-protocol-native }
    { name = libpipewire-module-metadata }
    { name = libpipewire-module-client-node }
    { name = libpipewire-module-access }
    { name = libpipewire-module-adapter }
    { name = libpipewire-module-link-factory }
    { name = libpipewire-module-session-manager }
]
context.objects = [
    { factory = adapter args = {
        factory.name = support.null-audio-sink
        node.name = sink
        media.class = Audio/Sink
        audio.rate = 48000
        audio.position = [ FL FR ]
        node.param.PortConfig = { direction = Input mode = dsp format = {
            mediaType = audio mediaSubtype = raw format = F32P
            rate = 48000 channels = 2 position = [ FL FR ]
        } }
    } }
]
"#;

/// Gives a stream its ports, which else a session manager does.
const CLIENT: &str = r#"
context.spa-libs = {
    audio.convert.* = audioconvert/libspa-audioconvert
    support.* = support/libspa-support
}
context.modules = [
    { name = libpipewire-module-protocol-native }
    { name = libpipewire-module-client-node }
    { name = libpipewire-module-adapter }
    { name = libpipewire-module-metadata }
    { name = libpipewire-module-session-manager }
]
stream.properties = {
    node.param.PortConfig = { direction = Output mode = dsp format = {
        mediaType = audio mediaSubtype = raw format = F32P
        rate = 48000 channels = 2 position = [ FL FR ]
    } }
}
"#;

const PULSE: &str = r#"
context.spa-libs = {
    audio.convert.* = audioconvert/libspa-audioconvert
    support.* = support/libspa-support
}
context.modules = [
    { name = libpipewire-module-protocol-native }
    { name = libpipewire-module-client-node }
    { name = libpipewire-module-adapter }
    { name = libpipewire-module-metadata }
    { name = libpipewire-module-protocol-pulse args = { server.address = [ "unix:native" ] } }
]
"#;

/// The fields end from the first to the last.
pub struct Sound {
    player: Option<Running>,
    _pulse: Running,
    server: Running,
    /// The servers' sockets and words.
    folder: Folder,
    buffer: Duration,
}

impl Sound {
    /// The servers, with buffers of that length.
    pub fn serve(buffer: Duration) -> Result<Sound> {
        let folder = Folder::make("sound")?;
        let frames = (buffer.as_secs_f64() * f64::from(RATE)).round().to_string();
        let server = SERVER.replace("{}", &frames);
        for (name, text) in [
            ("pipewire.conf", server.as_str()),
            ("client.conf", CLIENT),
            ("client-rt.conf", CLIENT),
            ("pipewire-pulse.conf", PULSE),
        ] {
            fs::write(folder.0.join(name), text)?;
        }
        silence(&folder.0.join("silence.wav")).context("cannot write silence")?;
        let environment = environment_in(&folder);
        let start = |program: &str, socket: &str| -> Result<Running> {
            let mut running = Running::start_in(&[program.to_owned()], &environment)?;
            running.wait_until("listens", || folder.0.join(socket).exists())?;
            Ok(running)
        };
        let server = start("pipewire", "pipewire-0")?;
        let pulse = start("pipewire-pulse", "pulse/native")?;
        Ok(Sound { player: None, _pulse: pulse, server, folder, buffer })
    }

    /// How programs find the servers.
    pub fn environment(&self) -> Environment {
        environment_in(&self.folder)
    }

    /// Begins to play, and says which process does.
    pub fn play(&mut self) -> Result<u32> {
        let file = self.folder.0.join("silence.wav").display().to_string();
        let words = ["pw-cat", "--playback", &file].map(str::to_owned);
        let mut player = Running::start_in(&words, &self.environment())?;
        let patience = Instant::now() + PATIENCE;
        for channel in ["FL", "FR"] {
            while !self.link(channel)? {
                player.lives()?;
                ensure!(Instant::now() < patience, "the player's {channel} port never comes");
                thread::sleep(Duration::from_millis(50));
            }
        }
        Ok(self.player.insert(player).child.id())
    }

    /// Ends the player.
    pub fn stop(&mut self) {
        self.player = None;
    }

    /// Whether the ports are there and linked now.
    fn link(&self, channel: &str) -> Result<bool> {
        let mut link = Command::new("pw-link");
        link.envs(self.environment()).stdin(Stdio::null()).stderr(Stdio::null());
        link.args([format!("pw-cat:output_{channel}"), format!("sink:playback_{channel}")]);
        Ok(link.status().context("cannot run pw-link")?.success())
    }

    pub fn processes(&self) -> impl Iterator<Item = u32> {
        self.player.iter().chain([&self.server]).map(|program| program.child.id())
    }

    pub fn lives(&mut self) -> Result<()> {
        self.player.iter_mut().chain([&mut self.server]).try_for_each(Running::lives)
    }

    /// What became of the buffers whose time came within that time.
    pub fn figures(&self, trace: &str, within: &Range<u64>) -> Result<Value> {
        let player = self.player.as_ref().context("nobody plays")?;
        let data = |program: &Running| {
            let process = program.child.id();
            let other = |thread: &u32| *thread != process;
            let found = procfs::threads(process).into_iter().find(other);
            found.with_context(|| format!("process {process} has no thread for its data"))
        };
        let mut took = filled(trace, data(&self.server)?, data(player)?, within);
        let length = self.buffer.as_nanos() as u64;
        let asked = (within.end - within.start) / length;
        let late = late(&took, asked, length);
        Ok(json!({
            "buffer_ns": length,
            "asked": asked,
            "late": late,
            "late_percent": 100.0 * late as f64 / asked as f64,
            "to_full_ns": numbers::quantiles(&mut took),
        }))
    }
}

fn environment_in(folder: &Folder) -> Environment {
    let place = folder.0.display().to_string();
    ["PIPEWIRE_CONFIG_DIR", "XDG_RUNTIME_DIR"].map(|name| (name, place.clone())).to_vec()
}

/// A file of that format; its zeroes take no space.
fn silence(path: &PathBuf) -> Result<()> {
    let length = SILENCE_SECONDS * RATE * FRAME;
    let mut file = File::create(path)?;
    let mut header = b"RIFF".to_vec();
    header.extend((36 + length).to_le_bytes());
    header.extend(b"WAVEfmt ");
    // The length of what follows, PCM, the channels.
    header.extend([16u32.to_le_bytes(), (1u32 | 2 << 16).to_le_bytes()].concat());
    header.extend([RATE.to_le_bytes(), (RATE * FRAME).to_le_bytes()].concat());
    // Bytes of a frame, bits of a sample.
    header.extend((FRAME | 16 << 16).to_le_bytes());
    header.extend(b"data");
    header.extend(length.to_le_bytes());
    file.write_all(&header)?;
    Ok(file.set_len(u64::from(length) + header.len() as u64)?)
}

/// How many of the buffers of that length were not full in time, or not at all: PipeWire skips the
/// time of a buffer while it is late with the one before.
fn late(took: &[u64], asked: u64, length: u64) -> u64 {
    asked.saturating_sub(took.iter().filter(|took| **took <= length).count() as u64)
}

/// How long it took to fill each buffer whose time came within that time, by the threads that deal
/// with the server's and the player's data.
fn filled(trace: &str, server: u32, player: u32, within: &Range<u64>) -> Vec<u64> {
    let mut took = vec![];
    // Whether the server and the player sleep.
    let mut sleeps = [true; 2];
    // When the buffer's time came, and whether the player has been woken for it.
    let mut buffer: Option<(u64, bool)> = None;
    for line in trace.lines().filter_map(Line::read) {
        let which = |name: &str| {
            let thread = line.number(name)?;
            [server, player].iter().position(|it| u64::from(*it) == thread)
        };
        match line.event {
            "sched_waking" => {
                let Some(woken) = which("pid") else { continue };
                sleeps[woken] = false;
                let is_player = woken == 1;
                match &mut buffer {
                    Some((_, asked)) => *asked |= is_player,
                    None if !is_player => buffer = Some((line.time, false)),
                    None => {}
                }
            }
            "sched_switch" => {
                let Some(stopped) = which("prev_pid") else { continue };
                sleeps[stopped] =
                    line.word("prev_state").is_some_and(|state| !state.starts_with('R'));
                if sleeps != [true; 2] {
                    continue;
                }
                if let Some((begin, true)) = buffer.take()
                    && within.contains(&begin)
                {
                    took.push(line.time - begin);
                }
            }
            _ => {}
        }
    }
    took
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "\
  hog-9 [000] d.h1. 1.000000: sched_waking: comm=pipewire pid=7 prio=120 target_cpu=000
  hog-9 [000] d..2. 1.000300: sched_switch: prev_comm=hog prev_pid=9 prev_prio=120 prev_state=R \
      ==> next_comm=pipewire next_pid=7 next_prio=120
  pipewire-7 [000] d..2. 1.000310: sched_waking: comm=pw-cat pid=8 prio=120 target_cpu=000
  pipewire-7 [000] d..2. 1.000400: sched_switch: prev_comm=pipewire prev_pid=7 prev_prio=120 \
      prev_state=S ==> next_comm=pw-cat next_pid=8 next_prio=120
  pw-cat-8 [000] d..2. 1.000500: sched_waking: comm=pipewire pid=7 prio=120 target_cpu=000
  pw-cat-8 [000] d..2. 1.000600: sched_switch: prev_comm=pw-cat prev_pid=8 prev_prio=120 \
      prev_state=S ==> next_comm=pipewire next_pid=7 next_prio=120
  pipewire-7 [000] d..2. 1.000650: sched_switch: prev_comm=pipewire prev_pid=7 prev_prio=120 \
      prev_state=R ==> next_comm=hog next_pid=9 next_prio=120
  pipewire-7 [000] d..2. 1.000700: sched_switch: prev_comm=pipewire prev_pid=7 prev_prio=120 \
      prev_state=S ==> next_comm=hog next_pid=9 next_prio=120
";

    #[test]
    fn a_buffer_is_full_when_the_server_sleeps_after_the_player() {
        let second = 1_000_000_000;
        assert_eq!(filled(TRACE, 7, 8, &(second..2 * second)), [700_000]);
        assert_eq!(filled(TRACE, 7, 8, &(0..second)), [0; 0]);
        // Without the player's word it is not full.
        assert_eq!(filled(TRACE, 7, 9, &(second..2 * second)), [0; 0]);
    }

    /// The player ends its work on another CPU before the server sleeps.
    const AT_ONCE: &str = "\
  hog-9 [000] d.h1. 1.000000: sched_waking: comm=pipewire pid=7 prio=120 target_cpu=000
  pipewire-7 [000] d..2. 1.000010: sched_waking: comm=pw-cat pid=8 prio=120 target_cpu=001
  pw-cat-8 [001] d..2. 1.000040: sched_switch: prev_comm=pw-cat prev_pid=8 prev_prio=120 \
      prev_state=S ==> next_comm=hog next_pid=9 next_prio=120
  pipewire-7 [000] d..2. 1.000060: sched_switch: prev_comm=pipewire prev_pid=7 prev_prio=120 \
      prev_state=S ==> next_comm=hog next_pid=9 next_prio=120
  hog-9 [000] d.h1. 1.001000: sched_waking: comm=pipewire pid=7 prio=120 target_cpu=000
  pipewire-7 [000] d..2. 1.001020: sched_switch: prev_comm=pipewire prev_pid=7 prev_prio=120 \
      prev_state=S ==> next_comm=hog next_pid=9 next_prio=120
";

    #[test]
    fn a_player_on_another_cpu_may_be_done_before_the_server_sleeps() {
        // The second wake-up was for something else.
        assert_eq!(filled(AT_ONCE, 7, 8, &(0..2_000_000_000)), [60_000]);
    }

    #[test]
    fn a_buffer_that_was_skipped_is_late() {
        assert_eq!(late(&[100, 1000, 1001], 4, 1000), 2);
        assert_eq!(late(&[100; 4], 4, 1000), 0);
    }

    #[test]
    fn silence_is_as_long_as_its_header_says() {
        let path = std::env::temp_dir().join(format!("attune-silence-{}", std::process::id()));
        silence(&path).expect("it is written");
        let bytes = fs::read(&path).expect("it is there");
        fs::remove_file(&path).expect("it is there");
        let length = u32::from_le_bytes(bytes[40..44].try_into().expect("four bytes"));
        assert_eq!((&bytes[36..40], bytes.len()), (&b"data"[..], 44 + length as usize));
    }
}
