//! Finds out whether this machine can run an experiment with real players; if not, what is missing
//! and what to do.

use std::path::Path;

use anyhow::{Result, bail};
use attune_linux::process::effective_user;

use crate::programs;

/// Err: these programs are missing, or the privilege.
pub fn require(names: &[&str]) -> Result<()> {
    programs::installed(names)?;
    if effective_user() != 0 {
        bail!(
            "it listens to players from inside the kernel and gives reservations: run it as root"
        );
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        bail!(
            "this kernel does not describe its types (BTF), which listening needs: use a \
                distribution's kernel"
        );
    }
    Ok(())
}
