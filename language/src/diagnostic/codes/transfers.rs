//! E06xx, W06xx: transfers, and what containers hold.

codes! {}
