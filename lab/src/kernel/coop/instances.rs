//! Experiment `coop-instances`: cooperation on four CPUs with an instance of the policy for the
//! machine, for each cache and for each CPU.

use attune_kernel::Per;

use super::{FAIR, SETTING};
use crate::kernel::{Contestant, Description, Figure, Part, Place, Results, TWO_SEEDS, Workload};
use crate::report::Claim;

const P99: &str = "p99 (ms)";
const P999: &str = "p99.9 (ms)";
const USEFUL: &str = "useful CPU (%)";
const NAME: &str = "coop, times 4";
/// Times of the policy, four times as long.
const SLOWER: &str = "--set period=80ms --set min_slice=400us --set coop_slack=4ms \
    --set lead=2ms --set credit=160ms --set patience=2s";
const PERS: [Per; 3] = [Per::Machine, Per::Cache, Per::Cpu];
/// What is claimed, in ms, and of the fair class's useful CPU.
const MOST_P99: f64 = 0.35;
const MOST_P999: f64 = 1.0;
const LEAST_USEFUL: f64 = 0.97;

pub const EXPERIMENT: Description = Description {
    name: "coop-instances",
    about: "tardiness and useful CPU on four CPUs with one instance of coop, one for each cache, \
        one for each CPU; eight players and four hogs for each CPU",
    title: "Cooperation in instances",
    text: &[
        SETTING,
        "The machine's CPUs take turns, and its clock goes on in each one's turn: each is four \
            times slower. So callbacks last four times as long, periods of timers and times of the \
            policy are four times as long too, and the tardiness in the table is a quarter of what \
            was measured. The machine has two sockets with a last-level cache each.",
    ],
    published: "nothing: one CPU.",
    parts: &[Part {
        title: "Thirty-two players and sixteen hogs on four CPUs",
        place: Place::divided(4, 2),
        contestants: || {
            let coop = PERS.map(|per| Contestant::ours_changed(NAME, "coop", SLOWER).per(per));
            [Contestant::fair_class().briefly()].into_iter().chain(coop).collect()
        },
        workloads: &[Workload::new(
            "players",
            "players --count 32 --hogs 16 --slower 4 --seconds {seconds}",
        )
        .lasting(8, 4)
        .with_memory(2048)],
        figures: &[
            Figure::new("p50 (ms)", "players", "/late_ns/p50", 1e6),
            Figure::new(P99, "players", "/late_ns/p99", 1e6),
            Figure::new(P999, "players", "/late_ns/p999", 1e6),
            Figure::new("worst (ms)", "players", "/late_ns/max", 1e6),
            Figure::new(USEFUL, "players", "/useful_percent", 1.0),
            Figure::new("hogs (%)", "players", "/hogs_percent", 1.0),
        ],
    }],
    seeds: TWO_SEEDS,
    drawn: P99,
    claims,
};

fn claims(results: &Results) -> Vec<Claim> {
    let of = |per: Per| {
        let name = Contestant::ours_changed(NAME, "coop", SLOWER).per(per).name;
        let most = |figure: &str, limit: f64| {
            Claim::new(
                format!("{name}: {figure} at most {limit} in every run"),
                results.worst(&name, figure).map(|late| (late <= limit, format!("{late:.3} ms"))),
            )
        };
        let useful = results.least(&name, USEFUL).zip(results.worst(FAIR, USEFUL));
        [
            most(P99, MOST_P99),
            most(P999, MOST_P999),
            Claim::new(
                format!("{name}: useful CPU at least {LEAST_USEFUL} times the fair class's"),
                useful.map(|(coop, fair)| {
                    let times = coop / fair;
                    (times >= LEAST_USEFUL, format!("{times:.3} times"))
                }),
            ),
        ]
    };
    PERS.into_iter().flat_map(of).collect()
}
