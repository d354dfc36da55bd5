//! Recordings of players with their true rates, taken from the rhythm crate (its traces/README.md
//! says what each is).

use std::io::Read;

use anyhow::{Context, Result};
use attune_rhythm::recording::{Event, parse};
use flate2::read::GzDecoder;

/// One of them.
pub struct Recording {
    pub name: &'static str,
    /// Idle, or beside hogs or periodic real-time tasks.
    pub loaded: bool,
    /// Hz; none for a program without a beat.
    pub rate: Option<f64>,
    packed: &'static [u8],
}

macro_rules! recording {
    ($name:literal, $loaded:literal, $rate:expr) => {
        Recording {
            name: $name,
            loaded: $loaded,
            rate: $rate,
            packed: include_bytes!(concat!("../../../knowledge/rhythm/traces/", $name, ".txt.gz")),
        }
    };
}

pub const RECORDINGS: &[Recording] = &[
    recording!("mplayer-v15.idle", false, Some(15.0)),
    recording!("mplayer-v25-x11.idle", false, Some(25.0)),
    recording!("mplayer-v23976-x11.idle", false, Some(23.976)),
    recording!("mplayer-w20.idle", false, Some(20.0)),
    recording!("mpv-v24.idle", false, Some(23.976)),
    recording!("mpv-v60.idle", false, Some(60.0)),
    recording!("vlc-v30.idle", false, Some(30.0)),
    recording!("vlc-v50.idle", false, Some(50.0)),
    recording!("ffplay-v30.idle", false, Some(30.0)),
    recording!("sox-mp3.idle", false, Some(9.5238)),
    recording!("mplayer-v15.hogs", true, Some(15.0)),
    recording!("mplayer-v25-x11.hogs", true, Some(25.0)),
    recording!("mplayer-v23976-x11.hogs", true, Some(23.976)),
    recording!("mplayer-w20.hogs", true, Some(20.0)),
    recording!("mplayer-v30.periodic", true, Some(30.0)),
    recording!("mpv-v24.hogs", true, Some(23.976)),
    recording!("mpv-v60.periodic", true, Some(60.0)),
    recording!("vlc-v30.hogs", true, Some(30.0)),
    recording!("vlc-v50.periodic", true, Some(50.0)),
    recording!("ffplay-v30.hogs", true, Some(30.0)),
    recording!("sox-mp3-pulse.hogs", true, Some(9.5238)),
    recording!("bursty1.idle", false, None),
    recording!("bursty1.hogs", true, None),
    recording!("bursty2.idle", false, None),
    recording!("compile.idle", false, None),
    recording!("compile.hogs", true, None),
];

impl Recording {
    pub fn events(&self) -> Result<Vec<Event>> {
        let mut bytes = Vec::new();
        GzDecoder::new(self.packed)
            .read_to_end(&mut bytes)
            .with_context(|| format!("unpacking {}", self.name))?;
        Ok(parse(&bytes).with_context(|| format!("reading {}", self.name))?.events)
    }
}
