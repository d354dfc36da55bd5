//! E07xx, W07xx: distributed schedulers.

codes! {}
