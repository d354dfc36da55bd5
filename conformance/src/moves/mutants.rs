//! Mistakes in moves between instances and in balance: each breaks something that the model of the
//! kernel must find.

use anyhow::{Context, Result};

use super::Machine;

/// As [`crate::mutants::Mutant`], in the engine's text.
pub struct Mutant {
    pub name: &'static str,
    /// What a user would see go wrong.
    pub breaks: &'static str,
    pub find: &'static str,
    pub replace: &'static str,
}

/// So many storms on each machine: some mistakes show once in some 100 000 events.
const SEEDS: u64 = 6;

impl Mutant {
    /// What the machines find of it; None if they find nothing.
    pub fn caught(&self, seed: u64, events: u64) -> Result<Option<String>> {
        let edit =
            |text: &str| text.contains(self.find).then(|| text.replace(self.find, self.replace));
        for (policy, shape) in super::machines() {
            let machine = Machine::build(policy, shape, &edit)?;
            let machine = machine.with_context(|| format!("{}: no such text", self.name))?;
            for seed in seed..seed + SEEDS {
                if let Err(broken) = machine.storm(seed, events)? {
                    return Ok(Some(broken));
                }
                if let Err(broken) = machine.shares(policy, seed)? {
                    return Ok(Some(broken));
                }
            }
        }
        Ok(None)
    }
}

const fn mutant(
    name: &'static str,
    breaks: &'static str,
    find: &'static str,
    replace: &'static str,
) -> Mutant {
    Mutant { name, breaks, find, replace }
}

pub const MUTANTS: &[Mutant] = &[
    // ---- away.h, move.h, life.h: a thread between two instances ----
    mutant(
        "moving-is-ready",
        "an event that meets a thread between two instances takes it for a ready one",
        "attune_goes_away(t, ATTUNE_MOVING);",
        "attune_goes_away(t, ATTUNE_READY);",
    ),
    mutant(
        "moved-still-listed",
        "a thread that has left is still in its old instance's list",
        "        attune_unlist(t);\n        attune_counts_no_more(t);\n",
        "        attune_counts_no_more(t);\n",
    ),
    mutant(
        "moved-still-weighs",
        "a thread that has left still weighs in its old instance",
        "        attune_unlist(t);\n        attune_counts_no_more(t);\n",
        "        attune_unlist(t);\n",
    ),
    mutant(
        "moved-still-stored",
        "a thread that has left sits in its old instance's container",
        "    attune_thread_remove(&t->attune);\n    own->state = as;\n",
        "    own->state = as;\n",
    ),
    mutant(
        "owner-kept",
        "a thread that has moved belongs to its old instance",
        "    own->instance = to;\n    attune_statistics.moves++;",
        "    attune_statistics.moves++;",
    ),
    mutant(
        "arrives-waiting",
        "a ready thread arrives as a waiting one",
        "    if (own->moves_as == ATTUNE_READY) {",
        "    if (0) {",
    ),
    mutant(
        "exit-forgotten",
        "a thread that ended while it moved arrives",
        "    if (own->ended) {",
        "    if (0) {",
    ),
    mutant(
        "exit-at-once",
        "the record of a thread that ends while it moves serves the next one at once",
        "    if (t->attune_task.state == ATTUNE_MOVING) {",
        "    if (0) {",
    ),
    mutant(
        "return-forgotten",
        "a thread that left the class while it moved, and came back, is lost",
        "        t->attune_task.ended = ATTUNE_STAYS;\n",
        "",
    ),
    mutant(
        "wrong-lock",
        "an event of a thread that has moved is told under its old instance's lock",
        "        if (t->attune_task.instance == instance)\n            return 1;",
        "        return 1;",
    ),
    // ---- hotplug.h: CPUs that go and come ----
    mutant(
        "stranded-stay",
        "a ready thread stays where no CPU is left for it",
        "        if (attune_is_stranded(t) && !t->attune_task.leaving)\n",
        "        if (0)\n",
    ),
    mutant(
        "stranded-too-late",
        "a thread that is ready after the look for such threads stays where no CPU is left for it",
        "    if (attune_absent && attune_is_stranded(t))",
        "    if (0)",
    ),
    mutant(
        "goes-with-its-thread",
        "the thread of a CPU that goes still has that CPU",
        "            attune_take_from_cpu(&attune_cpus[cpu], cpu);\n",
        "",
    ),
    mutant(
        "interrupts-as-it-goes",
        "a CPU asks for an interrupt as it goes, which keeps all later ones away",
        "    return attune_is_there(bpf_get_smp_processor_id());\n",
        "    return 1;\n",
    ),
    mutant(
        "gap-stays",
        "the numbers of an instance's CPUs have a gap",
        "        attune_close_gap(cpu);\n",
        "        (void)0;\n",
    ),
    mutant(
        "woken-on-its-way-out",
        "a thread that a CPU wakes as it goes waits for a kick that does not come",
        "    attune_hand_to_kernel(t, (uint32_t)scx_bpf_task_cpu(task));\n    return 1;\n",
        "    return 0;\n",
    ),
    // ---- where a thread goes, and which CPU takes it ----
    mutant(
        "sent-anywhere",
        "a thread is sent where its affinity forbids",
        "        if (attune_allowed_in(t, i) < ATTUNE_CPUS)\n            return i;",
        "        return i;",
    ),
    mutant(
        "affinity-ignored",
        "a thread stays in an instance that its affinity excludes",
        "    if ((!t->attune.pinned && attune_there[own]) || \
         attune_allowed_in(t, own) < ATTUNE_CPUS)\n",
        "    if (1)\n",
    ),
    mutant(
        "affinity-uncounted",
        "a ready thread counts for the CPUs where it might run before",
        "    if (listed)\n        attune_count_listed(t, 1);\n",
        "",
    ),
    mutant(
        "arrival-is-final",
        "a thread whose affinity changes while it moves stays where it may not run",
        "        goes_on = i + 1 < ATTUNE_DETOURS && attune_send(t, cpu);",
        "        goes_on = 0;",
    ),
    mutant(
        "pulls-forbidden",
        "a CPU pulls a thread that may not run there",
        "(t->attune_task.leaving || !attune_may_run_on(&t->attune, cpu))",
        "(t->attune_task.leaving)",
    ),
    mutant(
        "never-pulls",
        "a CPU idles beside threads of other instances",
        "            pulled = attune_pull(cpu);",
        "            pulled = NULL;",
    ),
    mutant(
        "asks-no-other",
        "a CPU that may not run what is ready asks no other one",
        "    if (me->unfit)\n",
        "    if (0)\n",
    ),
    mutant(
        "looks-once",
        "a thread that becomes ready while a CPU goes idle waits",
        "    if (me->running || !news)\n",
        "    if (1)\n",
    ),
    mutant(
        "return-unannounced",
        "a thread that may run elsewhere by now waits though CPUs are idle",
        "        attune_events[attune_held()]++;\n        attune_announce();\n",
        "",
    ),
    // ---- lag.h, balance.h ----
    mutant(
        "lag-kept",
        "the lag of a thread that ends stays in the books",
        "    attune_books[attune_held()].lags -= t->attune_task.account.lag;\n",
        "",
    ),
    mutant(
        "lag-counted-twice",
        "each settlement adds the whole lag to the books",
        "        book->lags += lag - account->lag;\n",
        "        book->lags += lag;\n",
    ),
    mutant(
        "service-lost",
        "what a thread received since it was dispatched does not count",
        "        account->service += attune_answer.now - account->serves_from;\n    \
            account->serves_from = 0;",
        "    account->serves_from = 0;",
    ),
    mutant(
        "heavier-is-lighter",
        "threads go to the instance with more weight",
        "return load * (int64_t)attune_there[other] < other_load * (int64_t)attune_there[one];",
        "return load * (int64_t)attune_there[other] > other_load * (int64_t)attune_there[one];",
    ),
    mutant(
        "lag-limit",
        "threads lag for seconds before one moves",
        "#define ATTUNE_LAG_LIMIT 50000000ll",
        "#define ATTUNE_LAG_LIMIT 5000000000ll",
    ),
    mutant(
        "nobody-goes",
        "where all threads of an instance lag, none leaves it",
        "        return attune_sacrifice(to);",
        "        return NULL;",
    ),
    mutant(
        "no-company",
        "a thread that leads gets no company",
        "    *lonely = -book->lowest > ATTUNE_LAG_LIMIT;",
        "    *lonely = 0;",
    ),
    mutant(
        "own-weight-forgotten",
        "a thread moves where it has less once it is there",
        "attune_lighter(lagging, lagging->attune_task.account.load)",
        "attune_lighter(lagging, 0)",
    ),
    mutant(
        "weight-unbounded",
        "a thread that has a CPU for itself keeps others away from the rest",
        "    return (int64_t)(weight <= most ? weight : most ? most : 1);",
        "    return (int64_t)weight;",
    ),
    mutant(
        "sum-of-lags-drifts",
        "threads are due more than there is",
        "        rate -= back < rate / 2 ? back : rate / 2;",
        "        rate += back;",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_has_what_each_mutant_changes() {
        let text = crate::moves::engine_text("fair").unwrap();
        for Mutant { name, find, .. } in MUTANTS {
            assert!(text.contains(find), "{name}: no such text");
        }
    }
}
