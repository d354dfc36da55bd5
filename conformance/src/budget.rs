//! How much is tried of random schedulers in random runs.

#[derive(Clone, Copy, Debug)]
pub struct Budget {
    pub schedulers: u64,
    /// Event sequences a scheduler, and an engine where several are tried.
    pub runs: u64,
    /// Steps a sequence.
    pub steps: usize,
    pub seed: u64,
    /// Statements a handler.
    pub size: usize,
}
