//! E04xx, W04xx: types.

codes! {}
