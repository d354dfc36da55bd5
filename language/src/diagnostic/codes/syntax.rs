//! E01xx: the text itself.

codes! {}
