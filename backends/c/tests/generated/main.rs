//! What comes out: C for small schedulers as snapshots, C for every scheduler there is through the
//! compilers, and what compiled schedulers do, names and messages included.

mod compiling;
mod library;
mod names;
mod nodes;
mod readable;
mod runs;
mod support;
mod traps;
mod verbatim;
