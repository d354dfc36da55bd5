//! What comes out: C for small schedulers as snapshots, and C for every scheduler there is through the compilers.

mod library;
mod support;
