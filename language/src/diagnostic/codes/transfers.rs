//! E06xx, W06xx: transfers, and what containers hold.

codes! {
    FIXED_MOVED = "E0601", "a fixed thread that is moved";
        "A parameter marked `fixed` stays where it is: the engine is in the middle of something with that thread. \
         `set_waiting` and `set_dead` are about the running thread, which `switch_out` moves right after them.";
        wrong r#"
scheduler s {
    data { queue waiting; }
    event set_waiting(fixed t) { t => waiting; }
}
"#;
        right r#"
scheduler s {
    thread { int blocked; }
    data { threadref current; queue waiting, ready; }
    event set_waiting(fixed t) { t.blocked = 1; }
    event switch_out { if (current.blocked) current => waiting; else current => ready; }
}
"#;

    DESTINATION = "E0602", "a transfer into something that is no container";
        "A thread is put into a container. Another thread, or a number, cannot hold it.";
        wrong r#"
scheduler s {
    data { threadref current; queue RQ; }
    event set_next_thread(t) { if (|RQ| > 0) RQ => t; }
}
"#;
        right r#"
scheduler s {
    data { threadref next; queue RQ; }
    event set_next_thread(t) { t => next; }
}
"#;
}
