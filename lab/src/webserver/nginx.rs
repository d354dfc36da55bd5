//! Configures nginx with one worker: as a server of files, as the server behind a proxy, and as a
//! caching proxy.

use std::fmt::Write as _;
use std::net::SocketAddrV4;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use attune_linux::process;

use crate::programs;

/// What an nginx is there for.
#[derive(Clone, Debug)]
pub enum Role<'a> {
    /// Serves the files of a site.
    Files(&'a Path, Tuning),
    /// Serves them behind a proxy, with leave to keep the replies for an hour. Below `/live/` it
    /// serves the small files and forbids to keep them.
    Upstream(&'a Path),
    /// Keeps the replies of the server there.
    Proxy(SocketAddrV4, Tuning),
}

/// What may suit an nginx, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Tuning {
    pub sendfile: bool,
    pub tcp_nopush: bool,
    pub open_file_cache: bool,
}

impl Tuning {
    pub const ALL: [Tuning; 4] = [
        Tuning::of(true, false, true),
        Tuning::of(true, true, true),
        Tuning::of(false, false, true),
        Tuning::of(true, false, false),
    ];

    const fn of(sendfile: bool, tcp_nopush: bool, open_file_cache: bool) -> Tuning {
        Tuning { sendfile, tcp_nopush, open_file_cache }
    }

    /// Its lines in a configuration.
    fn lines(self) -> String {
        let switch = |on| if on { "on" } else { "off" };
        let (sendfile, nopush) = (switch(self.sendfile), switch(self.tcp_nopush));
        let open_files = if self.open_file_cache { OPEN_FILES } else { "" };
        format!("    sendfile {sendfile};\n    tcp_nopush {nopush};\n{open_files}")
    }

    pub fn words(self) -> String {
        let Tuning { sendfile, tcp_nopush, open_file_cache } = self;
        let switch = |name, on| format!("{name} {}", if on { "on" } else { "off" });
        [("sendfile", sendfile), ("tcp_nopush", tcp_nopush), ("open_file_cache", open_file_cache)]
            .map(|(name, on)| switch(name, on))
            .join(", ")
    }
}

/// Where nginx is, if it is installed; Debian keeps it out of users' search path.
pub fn program() -> Option<PathBuf> {
    let elsewhere = ["/usr/sbin/nginx", "/usr/local/sbin/nginx"].map(PathBuf::from);
    programs::find("nginx").or_else(|| elsewhere.into_iter().find(|program| program.is_file()))
}

/// The text of its configuration; what it writes goes to `scratch`.
pub fn configuration(role: &Role, address: SocketAddrV4, scratch: &Path) -> Result<String> {
    let server = match role {
        Role::Files(site, tuning) => files(address, &whole(site)?, *tuning),
        Role::Upstream(site) => upstream(address, &whole(site)?),
        Role::Proxy(behind, tuning) => proxy(address, *behind, *tuning, scratch),
    };
    let scratch = scratch.display();
    let mut temporary = String::new();
    for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        let _ = writeln!(temporary, "    {kind}_temp_path \"{scratch}/{kind}\";");
    }
    // As root its worker would become another user, which may not be able to read the files.
    let user = if process::effective_user() == 0 { "user root;\n" } else { "" };
    Ok(format!(
        "{user}daemon off;\nmaster_process off;\nworker_processes 1;\npid \"{scratch}/nginx.pid\";\
            \nerror_log \"{scratch}/nginx.log\" error;\nevents {{ worker_connections 16384; }}\n\
            http {{\n{temporary}    access_log off;\n    tcp_nodelay on;\n    keepalive_requests \
            1000000;\n    default_type application/octet-stream;\n{server}}}\n"
    ))
}

fn whole(site: &Path) -> Result<PathBuf> {
    std::fs::canonicalize(site).with_context(|| site.display().to_string())
}

/// As ours listens: connections come with their first request (TCP_DEFER_ACCEPT).
const LISTEN: &str = "backlog=4096 deferred";

const OPEN_FILES: &str =
    "    open_file_cache max=1000 inactive=1h;\n    open_file_cache_valid 1h;\n";

fn files(address: SocketAddrV4, site: &Path, tuning: Tuning) -> String {
    let (site, tuning) = (site.display(), tuning.lines());
    format!("{tuning}    server {{ listen {address} {LISTEN}; root \"{site}\"; }}\n")
}

fn upstream(address: SocketAddrV4, site: &Path) -> String {
    let site = site.display();
    format!(
        "    sendfile on;\n{OPEN_FILES}    server {{\n        listen {address} {LISTEN};\n\
        \x20       location / {{ root \"{site}\"; expires 1h; }}\n        location /live/ {{ alias \
            \"{site}/small/\"; add_header Cache-Control no-store; }}\n    }}\n"
    )
}

fn proxy(address: SocketAddrV4, behind: SocketAddrV4, tuning: Tuning, scratch: &Path) -> String {
    let scratch = scratch.display();
    let tuning = tuning.lines();
    format!(
        "{tuning}    proxy_cache_path \
            \"{scratch}/cache\" levels=1:2 keys_zone=kept:10m max_size=256m inactive=1h \
            use_temp_path=off;\n    upstream behind {{ server {behind}; keepalive 64; \
            keepalive_requests 1000000; }}\n    server {{\n        listen {address} \
            {LISTEN};\n        location / {{\n            proxy_pass http://behind;\n            \
            proxy_http_version 1.1;\n            proxy_set_header Connection \"\";\n            \
            proxy_set_header Host $http_host;\n            proxy_set_header X-Forwarded-For \
            $proxy_add_x_forwarded_for;\n            proxy_cache kept;\n            \
            proxy_cache_key $http_host$request_uri;\n            proxy_cache_lock on;\n        \
            }}\n    }}\n"
    )
}
