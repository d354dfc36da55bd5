//! E03xx, W03xx: names and declarations.

codes! {}
