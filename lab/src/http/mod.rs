//! Load for HTTP servers: a generator of our own, and wrk.
//!
//! **Why both.** wrk is a closed loop: each of its N clients asks again as soon as it has its
//! answer. By Little's law the mean response time is then N / throughput, whatever the server's
//! scheduler does; a scheduler can only move it from one class of requests to another. People do
//! not wait for strangers' replies before they click, so response times at overload are measured
//! with an open loop: requests come at times fixed beforehand, and a late reply delays no later
//! request. None of the packaged open-loop generators outruns the server from a single core without
//! keep-alive; ours does, and its closed loop can be held against wrk's figures for the same
//! clients.

pub mod generator;
pub mod schedule;
pub mod wrk;
