//! Experiments of the embedded engine, on QEMU's mps2-an385: instructions are counted, so every run
//! repeats.

mod freertos;
mod lwip;
pub mod thread_metric;
pub mod weather;
pub mod web;
