//! E05xx, W05xx: handlers and their shapes.

codes! {}
