//! Checked scheduler to C, and the one runtime that every C engine shares.
