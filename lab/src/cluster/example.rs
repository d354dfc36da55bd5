//! The example clusters: their texts, and what switches their schedulers off.

pub struct Example {
    pub name: &'static str,
    pub workload: &'static str,
    pub master: &'static str,
    /// File and text of each family; a family is called as its file.
    pub nodes: &'static [(&'static str, &'static str)],
    /// Shared variables that switch the scheduler off.
    pub off: &'static [(&'static str, i64)],
    /// Shared variables of the model `request`.
    pub requested: &'static [&'static str],
}

macro_rules! example {
    ($name:literal, [$($node:literal),*], $off:expr) => {
        Example {
            name: $name,
            workload: include_str!(concat!("../../../examples/", $name, "/", $name, ".toml")),
            master: include_str!(concat!("../../../examples/", $name, "/", $name, ".sched")),
            nodes: &[$(
                ($node, include_str!(concat!("../../../examples/", $name, "/", $node)))
            ),*],
            off: $off,
            requested: &[],
        }
    };
}

pub const POOL: Example = example!("pool", ["process.subsched"], &[("threshold", 1000)]);
pub const CAMERAS: Example = example!(
    "cameras",
    ["camera.subsched", "server.subsched"],
    &[("limit", 1000), ("places", 1000)]
);
pub const WEBAPP: Example =
    example!("webapp", ["web.subsched", "database.subsched"], &[("prefer", 0), ("limit", 1000)]);

/// It has no simulated twin.
pub const TICKETS: Example = Example {
    name: "tickets",
    workload: "",
    master: include_str!("../../../examples/tickets/tickets.sched"),
    nodes: &[("counter.subsched", include_str!("../../../examples/tickets/counter.subsched"))],
    off: &[],
    requested: &["last"],
};
