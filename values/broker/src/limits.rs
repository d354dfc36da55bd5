//! How much a broker takes upon itself: as much as its descriptors allow.
//!
//! A connection that supplies values holds three descriptors: itself, its process and its page. One
//! that only asks holds one, and so does a door. So many stay free for the engine that no request
//! needs one in vain.

use attune_linux::places::Limits;

/// What fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Connections that supply no values, of programs that have just come or ask something.
    pub connections: Limits,
    /// Users with a door of their own.
    pub doors: usize,
    /// Processes that supply values, or have hints.
    pub processes: u32,
}

/// Descriptors that are left to the engine.
const ENGINE: u64 = 64;

const MOST: Limits = Limits { of_user: 128, of_all: 1024, kept_free: 32 };
const MOST_DOORS: usize = 256;
const MOST_PROCESSES: u64 = 1 << 14;

/// Descriptors with which nothing is scarce.
pub const WANTED: u64 =
    ENGINE + (MOST.of_all + MOST.kept_free + MOST_DOORS) as u64 + 3 * MOST_PROCESSES;

/// Where there may be so many open descriptors.
pub fn within(descriptors: u64) -> Sizes {
    let few = |part: u64, most: usize| (descriptors / part).clamp(1, most as u64) as usize;
    let connections = Limits {
        of_user: few(32, MOST.of_user),
        of_all: few(4, MOST.of_all),
        kept_free: few(16, MOST.kept_free),
    };
    let doors = few(16, MOST_DOORS);
    let others = ENGINE + (connections.of_all + connections.kept_free + doors) as u64;
    let processes = (descriptors.saturating_sub(others) / 3).min(MOST_PROCESSES) as u32;
    Sizes { connections, doors, processes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_have_what_they_need_where_descriptors_are_many() {
        let processes = MOST_PROCESSES as u32;
        let most = Sizes { connections: MOST, doors: MOST_DOORS, processes };
        assert_eq!(within(1 << 20), most);
        assert_eq!(within(WANTED), most);
    }

    #[test]
    fn descriptors_never_run_out() {
        for descriptors in [128, 256, 512, 1024, 4096, 65536, u64::MAX] {
            let Sizes { connections, doors, processes } = within(descriptors);
            let held = connections.of_all + connections.kept_free + doors + 3 * processes as usize;
            assert!(held as u64 <= descriptors - ENGINE, "{descriptors}");
        }
        within(0);
        let few = within(512);
        assert!(few.connections.of_user >= 16 && few.processes >= 64, "{few:?}");
    }
}
