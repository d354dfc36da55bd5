//! E02xx: files, inheritance, aspects.

codes! {}
