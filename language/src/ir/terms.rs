//! On what terms an import takes values: within which range, and from whom.

/// The terms of an import; of other variables the default, which says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The least and the greatest value, the first no greater than the second. Every read gives the
    /// nearest number in between, and an assignment stores it. Only of `int` and `time`.
    pub range: Option<(i64, i64)>,
    pub supplier: Supplier,
}

/// Which part of the system may say the value of an import. An engine inside one program, whose
/// threads all have one owner, takes every supplier for that program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Supplier {
    /// The process that owns the thread, and a table by process.
    #[default]
    Owner,
    /// The same, but only processes of root and of the user that loaded the policy.
    Loader,
    /// A table by process alone.
    Table,
    /// The kernel alone.
    Kernel,
}

impl Supplier {
    /// The word behind `by`.
    pub fn word(self) -> &'static str {
        match self {
            Supplier::Owner => "owner",
            Supplier::Loader => "loader",
            Supplier::Table => "table",
            Supplier::Kernel => "kernel",
        }
    }
}
