//! Experiment `transactions`: MariaDB under a mix of transactions of which new orders matter.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use super::{
    Contestant, Database, Description, FIVE_SEEDS, Figure, Part, Place, Results, Workload,
};
use crate::experiment::Options;
use crate::programs::find;
use crate::report::Claim;

const FAIR: &str = "fair class";
const OURS: &str = "attune transactions";
const COUNTING: &str = "attune lock_counts";

const CAPACITY: &str = "all (1/s)";
const ORDER: &str = "order: mean (ms)";
const OTHERS_RATE: &str = "others (1/s)";
const COUNTED_ORDER: &str = "locks told: order: mean (ms)";
/// What is claimed.
const MOST_OF_FAIR: f64 = 0.5;
const LEAST_OTHERS: f64 = 0.97;

/// Without logs that only replicas read; nothing waits for a disk.
macro_rules! server {
    () => {
        "mariadbd --no-defaults --user=root --datadir={database}/data --skip-networking \
         --socket=/tmp/attune-sql --pid-file=/tmp/attune-sql.pid --plugin-dir={programs} \
         --skip-log-bin --thread-cache-size=0 --innodb-buffer-pool-size=32M \
         --innodb-log-file-size=4M --innodb-data-file-path=ibdata1:2M:autoextend \
         --innodb-undo-tablespaces=0 --aria-log-file-size=8M --innodb-flush-log-at-trx-commit=2 \
         --innodb-use-native-aio=0"
    };
}

const DATABASE: Database = Database {
    tables: include_str!("../../../examples/database/tables.sql"),
    server: server!(),
    socket: "/tmp/attune-sql",
};

macro_rules! clients {
    ($words:literal) => {
        concat!(
            "served --socket /tmp/attune-sql --server '",
            server!(),
            "' -- database-clients --socket /tmp/attune-sql --real-time --seconds {seconds} ",
            $words
        )
    };
}

fn needs(options: &Options) -> Result<Vec<PathBuf>> {
    let ours = ["database-clients", "attune_hint.so"].map(|name| options.programs.join(name));
    for file in &ours {
        ensure!(file.exists(), "there is no {}; `make database` builds it", file.display());
    }
    let theirs = find("mariadbd").into_iter().chain(["/usr/share/mysql".into()]);
    Ok(ours.into_iter().chain(theirs).collect())
}

pub const EXPERIMENT: Description = Description {
    name: "transactions",
    about: "MariaDB as it is, told by its sessions that new orders matter, under arrivals at 90 % \
        of its capacity on two CPUs",
    title: "A database whose new orders matter",
    text: &[
        "MariaDB of Debian on two CPUs, with the tables and clients of examples/database: a mix \
            after TPC-C (45 % new orders, 43 % payments, 4 % each of order status, delivery and \
            stock level) that arrives with exponential gaps, whatever the server has answered. \
            Response: from the arrival to the answer. The clients are in SCHED_FIFO, so that no \
            policy delays them.",
        "Capacity is what 32 sessions complete that never wait, under the fair class. Arrivals \
            come at 90 % of it. Under `transactions` the sessions of new orders have said once \
            that they matter. Under `lock_counts`, the first design of such a policy, each \
            transaction says as it goes on how many rows it has locked; that costs capacity, and \
            its arrivals come at 90 % of what is left.",
    ],
    published: "Roper (2008): with a policy that knew important transactions a database completed \
        6.5 % more of them a minute.",
    parts: &[
        Part {
            title: "Capacity",
            place: Place::deterministic(2),
            contestants: || vec![Contestant::fair_class()],
            workloads: &[
                Workload::new("capacity", clients!("--rate 0"))
                    .on_database(DATABASE, needs)
                    .lasting(6, 3),
                Workload::new("capacity, locks told", clients!("--rate 0 --hints locks"))
                    .on_database(DATABASE, needs)
                    .lasting(6, 3),
            ],
            figures: &[
                Figure::new(CAPACITY, "capacity", "/all/per_second", 1.0),
                Figure::new(
                    "all, locks told (1/s)",
                    "capacity, locks told",
                    "/all/per_second",
                    1.0,
                ),
            ],
        },
        Part {
            title: "New orders matter",
            place: Place::deterministic(2),
            contestants: || vec![Contestant::fair_class(), Contestant::ours("transactions")],
            workloads: &[Workload::new("importance", clients!("--rate 400 --hints importance"))
                .on_database(DATABASE, needs)
                .lasting(6, 3)],
            figures: &[
                Figure::new(ORDER, "importance", "/orders/response_ns/mean", 1e6).with_ratio(),
                Figure::new("order: p99 (ms)", "importance", "/orders/response_ns/p99", 1e6),
                Figure::new("orders (1/s)", "importance", "/orders/per_second", 1.0),
                Figure::new("other: mean (ms)", "importance", "/others/response_ns/mean", 1e6),
                Figure::new(OTHERS_RATE, "importance", "/others/per_second", 1.0).with_ratio(),
            ],
        },
        Part {
            title: "The first design: locks are counted",
            place: Place::deterministic(2),
            contestants: || vec![Contestant::fair_class(), Contestant::ours("lock_counts")],
            workloads: &[Workload::new("locks", clients!("--rate 340 --hints locks"))
                .on_database(DATABASE, needs)
                .lasting(6, 3)],
            figures: &[
                Figure::new(COUNTED_ORDER, "locks", "/orders/response_ns/mean", 1e6).with_ratio(),
                Figure::new("locks told: order: p99 (ms)", "locks", "/orders/response_ns/p99", 1e6),
                Figure::new(
                    "locks told: other: mean (ms)",
                    "locks",
                    "/others/response_ns/mean",
                    1e6,
                ),
            ],
        },
    ],
    seeds: FIVE_SEEDS,
    drawn: ORDER,
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let order = results.worst_ratio((OURS, ORDER), (FAIR, ORDER));
    let others = results.least(OURS, OTHERS_RATE).zip(results.worst(FAIR, OTHERS_RATE));
    let counting = results.ratio(COUNTING, COUNTED_ORDER).zip(results.ratio(OURS, ORDER));
    vec![
        Claim::new(
            format!("a new order takes at most {MOST_OF_FAIR} times what it takes under {FAIR}"),
            order.map(|ratio| (ratio <= MOST_OF_FAIR, format!("{ratio:.3}"))),
        ),
        Claim::new(
            format!("all others are served at {LEAST_OTHERS} times their rate or more"),
            others.map(|(ours, fair)| {
                (ours >= LEAST_OTHERS * fair, format!("{ours:.1} a second against {fair:.1}"))
            }),
        ),
        Claim::new(
            "importance shortens the response of new orders by more than counted locks do",
            counting.map(|(counting, ours)| {
                let [counting, ours] = [counting, ours].map(|ratio| ratio.value);
                (ours < counting, format!("to {ours:.3} times the fair class's, to {counting:.3}"))
            }),
        ),
    ]
}
