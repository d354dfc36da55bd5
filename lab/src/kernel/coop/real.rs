//! What real players need in a machine in which nothing else is.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::experiment::Options;

/// The example player, with its library.
pub fn player(options: &Options) -> Result<Vec<PathBuf>> {
    let player = options.programs.join("player");
    ensure!(player.exists(), "there is no {}; `make -C examples/player` builds it", player.display());
    Ok(vec![player, options.programs.join("libattune_coop.so")])
}

/// An X server, and what it starts itself; the library by which it cooperates.
pub fn x_server(options: &Options) -> Result<Vec<PathBuf>> {
    let mut files = installed(&["Xvfb", "xkbcomp"])?;
    // By this name: it starts xkbcomp through it.
    files.extend(["/bin/sh", "/usr/share/X11/xkb"].map(PathBuf::from));
    files.extend(["attune", "libattune_coop_preload.so"].map(|name| options.programs.join(name)));
    Ok(files)
}

/// Programs of this machine, by their names.
pub fn installed(programs: &[&str]) -> Result<Vec<PathBuf>> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let find = |name: &&str| {
        let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
        found.with_context(|| format!("{name} is not installed; tools/setup.sh players does that"))
    };
    programs.iter().map(find).collect()
}
