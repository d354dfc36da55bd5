//! Experiments of the embedded engine, on QEMU's mps2-an385: instructions are counted, so every run
//! repeats.

pub mod weather;
