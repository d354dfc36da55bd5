//! lwIP's sources, as Debian has them: fetched by `tools/setup.sh embedded`, BSD licence, not a
//! part of this repository.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::programs;

/// lwIP's version, and Debian's mark on it.
const VERSION: &str = "2.1.3+dfsg1";

/// The files that TCP over IPv4 and Ethernet needs, without an operating system.
const SOURCES: [&str; 17] = [
    "core/def.c",
    "core/inet_chksum.c",
    "core/init.c",
    "core/ip.c",
    "core/ipv4/etharp.c",
    "core/ipv4/icmp.c",
    "core/ipv4/ip4.c",
    "core/ipv4/ip4_addr.c",
    "core/mem.c",
    "core/memp.c",
    "core/netif.c",
    "core/pbuf.c",
    "core/tcp.c",
    "core/tcp_in.c",
    "core/tcp_out.c",
    "core/timeouts.c",
    "netif/ethernet.c",
];

/// In XDG_CACHE_HOME or `~/.cache`, where the set-up has put it.
fn folder() -> PathBuf {
    programs::cache().join("attune/lwip").join(VERSION).join("src")
}

/// Whether it was fetched.
pub fn available() -> Result<()> {
    ensure!(
        folder().join("core/tcp.c").is_file(),
        "lwIP's sources are missing: `tools/setup.sh embedded` fetches them"
    );
    Ok(())
}

/// What tells the compiler of them.
pub fn flags() -> Vec<String> {
    let folder = folder();
    let headers = format!("-I{}", folder.join("include").display());
    let sources = SOURCES.into_iter().map(|name| folder.join(name).display().to_string());
    std::iter::once(headers).chain(sources).collect()
}
