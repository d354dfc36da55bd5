//! Experiments about rhythm, beside the figures of Cucinotta, Checconi, Abeni and Palopoli,
//! *Self-tuning schedulers for legacy real-time applications*, EuroSys 2010. Some need no
//! privileges: recordings of real players, and virtual time. The others run real players on a
//! display and a sound server of their own ([`live`]): they need root and what `tools/setup.sh
//! players` installs, and say so.

pub mod bandwidth;
pub mod controllers;
pub mod light_player;
mod live;
pub mod period_cost;
pub mod period_load;
pub mod period_window;
mod recordings;
pub mod trace_overhead;
pub mod tune_load;
