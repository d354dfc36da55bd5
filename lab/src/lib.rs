//! Experiments: workloads, peers, figures.
