//! Lists what the engine knows of a thread, and under which import's name a policy sees it.
//!
//! `bpf/handlers.h` and `bpf/implicit.h` call the functions that this list names; the C back end
//! writes them.

use attune_backend_c::kernel::{Import, Request, Supplies, Supply};
use attune_values::names;

/// Every other import, processes may supply, and a table by process, which takes precedence.
pub static SUPPLIES: Supplies =
    Supplies { kernel: KERNEL, table_alone: &[names::INPUT_RATING, names::OUTPUT_RATING] };

const KERNEL: &[Supply] = &[
    Supply {
        function: "attune_supply",
        comment: "Thread imports that the kernel itself supplies.",
        request: None,
        yields: false,
        of_task: false,
        imports: &[Import { name: "process", value: "thread->attune_task.tgid", processes: false }],
    },
    // Loads of cgroups cost something: only policies that ask pay for it.
    Supply {
        function: "attune_supply_part",
        comment: "The import that tells a thread's part of the machine.",
        request: Some(Request {
            import: "weight",
            in_macro: "TAKES_WEIGHT",
            before: "/* Some policy wants to know weights. */\n#define ATTUNE_WEIGHED 1\n",
        }),
        yields: false,
        of_task: false,
        imports: &[Import { name: "weight", value: "thread->attune_task.part", processes: false }],
    },
    Supply {
        function: "attune_supply_task",
        comment: "Thread imports that the kernel's task tells.",
        request: None,
        yields: false,
        of_task: true,
        imports: &[
            Import { name: "parent", value: "task->real_parent->tgid", processes: false },
            Import { name: "user", value: "task->real_cred->uid.val", processes: false },
            Import { name: "nice", value: "attune_nice(task)", processes: false },
            Import {
                name: "kernel_thread",
                value: "(task->flags & PF_KTHREAD) != 0",
                processes: false,
            },
            Import { name: "io_wait", value: "attune_io_wait(task)", processes: false },
        ],
    },
    Supply {
        function: "attune_supply_waker",
        comment: "The import that tells which thread woke this one.",
        request: None,
        yields: false,
        of_task: false,
        imports: &[Import { name: "waker", value: "attune_waker()", processes: false }],
    },
    // Watching what threads wait until costs something: only policies that ask pay for it.
    Supply {
        function: "attune_tell",
        comment: "Thread imports that the kernel supplies where no process does.",
        request: Some(Request {
            import: "implicit",
            in_macro: "TAKES_TIMEOUTS",
            before: "/* Some policy wants to know what threads wait until. */\n\
                     #define ATTUNE_IMPLICIT 1\n",
        }),
        yields: true,
        of_task: false,
        imports: &[
            Import {
                name: names::POLLS,
                value: "thread->attune_task.timeouts.told",
                processes: true,
            },
            Import {
                name: names::NEXT_RELEASE,
                value: "thread->attune_task.timeouts.release",
                processes: true,
            },
            Import {
                name: "implicit",
                value: "thread->attune_task.timeouts.told != 0",
                processes: false,
            },
        ],
    },
];
