//! Whether this machine can run an experiment with real players; if not, what is missing and what to do.

use std::path::Path;

use anyhow::{Result, bail};

/// Err: these programs are missing, or the privilege. It names all of them at once.
pub fn require(programs: &[&str]) -> Result<()> {
    let missing: Vec<&str> = programs.iter().copied().filter(|program| !installed(program)).collect();
    if !missing.is_empty() {
        bail!("it needs {}: on Debian `tools/setup.sh players` installs them", missing.join(", "));
    }
    // SAFETY: always safe.
    if unsafe { libc::geteuid() } != 0 {
        bail!("it listens to players from inside the kernel and gives reservations: run it as root");
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        bail!(
            "this kernel does not describe its types (BTF), which listening needs: use a distribution's kernel"
        );
    }
    Ok(())
}

fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_missing_is_named() {
        let error = super::require(&["sh", "no-such-player", "no-such-server"]).unwrap_err().to_string();
        assert!(error.contains("no-such-player, no-such-server") && error.contains("tools/setup.sh players"));
    }
}
