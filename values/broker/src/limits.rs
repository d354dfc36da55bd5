//! How much a broker takes upon itself: as much as its descriptors allow.
//!
//! A connection that supplies values holds three descriptors: itself, its process and its page. One
//! that only asks holds one. So many stay free for the engine that no request needs one in vain.

use attune_linux::places::Limits;

/// Descriptors that are left to the engine.
const ENGINE: u64 = 64;

/// Connections that supply no values, of programs that have just come or ask something.
const MOST: Limits = Limits { of_user: 128, of_all: 1024, kept_free: 32 };
/// Processes that supply values, or have hints.
const MOST_PROCESSES: u64 = 1 << 14;

/// Descriptors with which nothing is scarce.
pub const WANTED: u64 = ENGINE + (MOST.of_all + MOST.kept_free) as u64 + 3 * MOST_PROCESSES;

/// The places for connections that supply no values, and how many processes have values, where
/// there may be so many open descriptors.
pub fn within(descriptors: u64) -> (Limits, u32) {
    let few = |part: u64, most: usize| (descriptors / part).clamp(1, most as u64) as usize;
    let connections = Limits {
        of_user: few(32, MOST.of_user),
        of_all: few(4, MOST.of_all),
        kept_free: few(16, MOST.kept_free),
    };
    let others = ENGINE + (connections.of_all + connections.kept_free) as u64;
    let processes = descriptors.saturating_sub(others) / 3;
    (connections, processes.min(MOST_PROCESSES) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_have_what_they_need_where_descriptors_are_many() {
        assert_eq!(within(1 << 20), (MOST, MOST_PROCESSES as u32));
        assert_eq!(within(WANTED), (MOST, MOST_PROCESSES as u32));
    }

    #[test]
    fn descriptors_never_run_out() {
        for descriptors in [128, 256, 512, 1024, 4096, 65536, u64::MAX] {
            let (connections, processes) = within(descriptors);
            let held = connections.of_all + connections.kept_free + 3 * processes as usize;
            assert!(held as u64 <= descriptors - ENGINE, "{descriptors}");
        }
        within(0);
        let (connections, processes) = within(512);
        assert!(connections.of_user >= 16 && processes >= 64, "{connections:?} {processes}");
    }
}
