//! User-level threads inside one process, scheduled by a compiled scheduler.
