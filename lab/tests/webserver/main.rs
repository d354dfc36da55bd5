//! The example web server, and the same as a caching proxy, under real and under hostile clients,
//! over loopback, under `fifo` and under `shortest_reply`.
//!
//! Limits are set to fractions of a second where a test waits for them; no test asserts how long
//! something took beyond "it ended, and not because of the test's own patience".

mod behind;
mod client;
mod hostile;
mod ordinary;
mod proxy;
mod proxy_faults;
mod starting;
