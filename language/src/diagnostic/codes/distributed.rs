//! E07xx, W07xx: distributed schedulers.

codes! {
    NOT_DISTRIBUTED = "E0701", "a word of distributed schedulers in an ordinary one";
        "`GLOBAL.x` is a variable that the nodes of a distributed scheduler share, and `n \
         is family` asks what a node is. A node scheduler is checked together with its \
         master, by checking the master.";
        wrong r#"
scheduler s {
    data { int n; }
    event init { n = GLOBAL.n; }
}
"#;
        right r#"
scheduler s {
    data { int n, m; }
    event init { n = m; }
}

"#;

    UNKNOWN_SHARED = "E0702", "a shared variable that the master does not declare";
        "`GLOBAL.x` is a variable of the master's `global { .. }`, which all nodes share.";
        wrong [
            ("cluster.sched", r#"
distributed scheduler cluster {
    nodefamilies { "worker.subsched" : worker; }
    nodes { queue workers; }
    global { int total; }
    arrival (n) { n => workers; }
}
"#),
            ("worker.subsched", r#"
scheduler worker {
    data { queue RQ; }
    event newthread(t) { GLOBAL.totl += 1; t => RQ; }
}
"#),
        ];
        right [
            ("cluster.sched", r#"
distributed scheduler cluster {
    nodefamilies { "worker.subsched" : worker; }
    nodes { queue workers; }
    global { int total; }
    arrival (n) { n => workers; }
}
"#),
            ("worker.subsched", r#"
scheduler worker {
    data { queue RQ; }
    event newthread(t) { GLOBAL.total += 1; t => RQ; }
}
"#),
        ];

    UNKNOWN_NODE_VARIABLE = "E0703", "a variable that no node has";
        "`node.x` is a variable at the top of a node's scheduler: in its `data` or its `imports`.";
        wrong [
            ("cluster.sched", r#"
distributed scheduler cluster {
    nodefamilies { "worker.subsched" : worker; }
    nodes { node first; queue workers; }
    arrival (n) { if (|first| == 0) n => first; else n => workers; }
}
"#),
            ("worker.subsched", r#"
scheduler worker {
    data { queue RQ; int load; }
    event newthread(t) { load = first.lod + 1; t => RQ; }
}
"#),
        ];
        right [
            ("cluster.sched", r#"
distributed scheduler cluster {
    nodefamilies { "worker.subsched" : worker; }
    nodes { node first; queue workers; }
    arrival (n) { if (|first| == 0) n => first; else n => workers; }
}
"#),
            ("worker.subsched", r#"
scheduler worker {
    data { queue RQ; int load; }
    event newthread(t) { load = first.load + 1; t => RQ; }
}
"#),
        ];

    UNKNOWN_FAMILY = "E0704", "a family that the master does not name";
        "Families of nodes are named in `nodefamilies`, each with the file of its node scheduler.";
        wrong [
            ("cluster.sched", r#"
distributed scheduler cluster {
    nodefamilies { "worker.subsched" : worker; }
    nodes { queue workers; stack others; }
    arrival (n) { if (n is worke) n => workers; else n => others; }
}
"#),
            ("worker.subsched", r#"
scheduler worker { data { queue RQ; } event newthread(t) { t => RQ; } }
"#),
        ];
        right [
            ("cluster.sched", r#"
distributed scheduler cluster {
    nodefamilies { "worker.subsched" : worker; }
    nodes { queue workers; stack others; }
    arrival (n) { if (n is worker) n => workers; else n => others; }
}
"#),
            ("worker.subsched", r#"
scheduler worker { data { queue RQ; } event newthread(t) { t => RQ; } }
"#),
        ];

    NODE_NOT_STORED = "E0705", "a node that has come and is not stored";
        "A node is in exactly one container of the master, always: `arrival` puts it into \
         one, on every path.";
        wrong [
            ("cluster.sched", r#"
distributed scheduler cluster {
    nodefamilies { "worker.subsched" : worker; }
    nodes { queue workers; }
    arrival (n) { if (|workers| < 9) n => workers; }
}
"#),
            ("worker.subsched", r#"
scheduler worker { data { queue RQ; } event newthread(t) { t => RQ; } }
"#),
        ];
        right [
            ("cluster.sched", r#"
distributed scheduler cluster {
    nodefamilies { "worker.subsched" : worker; }
    nodes { queue workers; }
    arrival (n) { n => workers; }
}
"#),
            ("worker.subsched", r#"
scheduler worker { data { queue RQ; } event newthread(t) { t => RQ; } }
"#),
        ];

    SHARED_CONTAINER = "E0706", "a container among the shared variables";
        "A thread belongs to one node, so its container does too. What nodes share are numbers.";
        wrong [
            ("cluster.sched", r#"
distributed scheduler cluster {
    nodefamilies { "worker.subsched" : worker; }
    nodes { queue workers; }
    global { queue waiting; }
    arrival (n) { n => workers; }
}
"#),
            ("worker.subsched", r#"
scheduler worker { data { queue RQ; } event newthread(t) { t => RQ; } }
"#),
        ];
        right [
            ("cluster.sched", r#"
distributed scheduler cluster {
    nodefamilies { "worker.subsched" : worker; }
    nodes { queue workers; }
    global { int waiting; }
    arrival (n) { n => workers; }
}
"#),
            ("worker.subsched", r#"
scheduler worker { data { queue RQ; } event newthread(t) { t => RQ; } }
"#),
        ];

    FOREIGN_CONTAINER = "E0707", "a container of another node";
        "A thread never leaves its node, so another node's containers can only be counted, \
         `|node.C|`, and commanded: `suspend node.C;` and `resume node.C;` tell the node \
         to suspend or resume the threads in it.";
        wrong [
            ("cluster.sched", r#"
distributed scheduler cluster {
    nodefamilies { "worker.subsched" : worker; }
    nodes { node first; }
    arrival (n) { if (n.RQ > 0) n => first; else n => first; }
}
"#),
            ("worker.subsched", r#"
scheduler worker extends fifo { data { queue RQ; } }
"#),
            ("fifo.sched", r#"
scheduler fifo { event newthread(t) { t => RQ; } }
"#),
        ];
        right [
            ("cluster.sched", r#"
distributed scheduler cluster {
    nodefamilies { "worker.subsched" : worker; }
    nodes { queue busy, idle; }
    arrival (n) { if (|n.RQ| > 0) n => busy; else n => idle; }
}
"#),
            ("worker.subsched", r#"
scheduler worker { data { queue RQ; } event newthread(t) { t => RQ; } }
"#),
        ];

    NOT_A_NODE = "E0708", "a node is needed";
        "`n is family`, `suspend n.C` and `resume n.C` speak of a node: in the master a \
         parameter, a `foreach` variable or the first of a container; in a node scheduler \
         one that the master declares as `node`.";
        wrong [
            ("cluster.sched", r#"
distributed scheduler cluster {
    nodefamilies { "worker.subsched" : worker; }
    nodes { node first; queue others; }
    arrival (n) { if (|first| == 0) n => first; else n => others; }
}
"#),
            ("worker.subsched", r#"
scheduler worker {
    data { queue RQ; }
    event newthread(t) { if (t is worker) t => RQ; else t => RQ; }
}
"#),
        ];
        right [
            ("cluster.sched", r#"
distributed scheduler cluster {
    nodefamilies { "worker.subsched" : worker; }
    nodes { node first; queue others; }
    arrival (n) { if (|first| == 0) n => first; else n => others; }
}
"#),
            ("worker.subsched", r#"
scheduler worker {
    data { queue RQ; stack SQ; }
    event newthread(t) { if (first is worker) t => RQ; else t => SQ; }
}
"#),
        ];

    NOT_REMOTE = "E0709", "the age of a variable that is here";
        "`age(GLOBAL.x)` and `age(node.x)` tell how long ago a value was heard of that belongs \
         to the cluster or to another node. A node's own variables have no age.";
        wrong [
            ("cluster.sched", r#"
distributed scheduler cluster {
    nodefamilies { "worker.subsched" : worker; }
    nodes { queue workers; }
    global { int total; }
    arrival (n) { n => workers; }
}
"#),
            ("worker.subsched", r#"
scheduler worker {
    data { queue RQ; int mine; }
    event newthread(t) { if (age(mine) < 1s) mine++; t => RQ; }
}
"#),
        ];
        right [
            ("cluster.sched", r#"
distributed scheduler cluster {
    nodefamilies { "worker.subsched" : worker; }
    nodes { queue workers; }
    global { int total; }
    arrival (n) { n => workers; }
}
"#),
            ("worker.subsched", r#"
scheduler worker {
    data { queue RQ; int mine; }
    event newthread(t) { if (age(total) < 1s) mine++; t => RQ; }
}
"#),
        ];

    ATOMIC = "E0710", "an atomic block that does more than write";
        "Other nodes see the assignments of `atomic { .. }` together. Nothing in the \
         block waits, so it holds assignments to shared variables and to other nodes' \
         variables, and nothing else.";
        wrong [
            ("cluster.sched", r#"
distributed scheduler cluster {
    nodefamilies { "worker.subsched" : worker; }
    nodes { queue workers; }
    global { int total, last; }
    arrival (n) { n => workers; }
}
"#),
            ("worker.subsched", r#"
scheduler worker {
    data { queue RQ; }
    event newthread(t) { atomic { total += 1; t => RQ; last = 1; } }
}
"#),
        ];
        right [
            ("cluster.sched", r#"
distributed scheduler cluster {
    nodefamilies { "worker.subsched" : worker; }
    nodes { queue workers; }
    global { int total, last; }
    arrival (n) { n => workers; }
}
"#),
            ("worker.subsched", r#"
scheduler worker {
    data { queue RQ; }
    event newthread(t) { atomic { total += 1; last = 1; } t => RQ; }
}
"#),
        ];

    SHARED_ARRAY = "E0711", "an array among the shared variables";
        "Nodes share single numbers: each variable of the master's `global { .. }` is one, and \
         an update merges with those of other nodes.";
        wrong [
            ("cluster.sched", r#"
distributed scheduler cluster {
    nodefamilies { "worker.subsched" : worker; }
    nodes { queue workers; }
    global { int load[2]; }
    arrival (n) { load[0] += 1; n => workers; }
}
"#),
            ("worker.subsched", r#"
scheduler worker { data { queue RQ; } event newthread(t) { t => RQ; } }
"#),
        ];
        right [
            ("cluster.sched", r#"
distributed scheduler cluster {
    nodefamilies { "worker.subsched" : worker; }
    nodes { queue workers; }
    global { int load0, load1; }
    arrival (n) { load0 += 1; n => workers; }
}
"#),
            ("worker.subsched", r#"
scheduler worker { data { queue RQ; } event newthread(t) { t => RQ; } }
"#),
        ];

    HIDDEN = "W0701", "a name that a name further out hides";
        "In a node scheduler a name means a shared global, then a global of the node, \
         then a local: unlike elsewhere, the outer one comes first. The inner declaration \
         can never be used.";
        wrong [
            ("cluster.sched", r#"
distributed scheduler cluster {
    nodefamilies { "worker.subsched" : worker; }
    nodes { queue workers; }
    global { int total; }
    arrival (n) { n => workers; }
}
"#),
            ("worker.subsched", r#"
scheduler worker {
    data { queue RQ; int total; }
    event newthread(t) { total += 1; t => RQ; }
}
"#),
        ];
        right [
            ("cluster.sched", r#"
distributed scheduler cluster {
    nodefamilies { "worker.subsched" : worker; }
    nodes { queue workers; }
    global { int total; }
    arrival (n) { n => workers; }
}
"#),
            ("worker.subsched", r#"
scheduler worker {
    data { queue RQ; int mine; }
    event newthread(t) { total += 1; mine += 1; t => RQ; }
}
"#),
        ];
}
