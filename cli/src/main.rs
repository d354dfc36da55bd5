//! The attune program: words and wiring.
fn main() {}
