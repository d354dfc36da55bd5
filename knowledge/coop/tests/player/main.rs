//! The example player (examples/player) on generated films: which frames it shows, in which order
//! and whether they are right; what it leaves out when the CPU is not enough; broken films; an X
//! server and a sound server. Needs FFmpeg, Xvfb, PulseAudio and the libraries that tools/setup.sh
//! test installs.

mod endings;
mod pictures;
mod playing;
mod sound;
mod windows;
