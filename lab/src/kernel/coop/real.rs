//! Lists the files that real players need in a virtual machine that holds nothing else.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::experiment::Options;
use crate::programs::installed;

/// The example player, with its library.
pub fn player(options: &Options) -> Result<Vec<PathBuf>> {
    let player = options.programs.join("player");
    ensure!(player.exists(), "there is no {}; `make player` builds it", player.display());
    Ok(vec![player, options.programs.join("libattune_coop.so")])
}

/// An X server, what it starts itself, and installed programs that show something on it.
pub fn x_server(with: &[&str]) -> Result<Vec<PathBuf>> {
    let mut files = installed(&[&["Xvfb", "xkbcomp"], with].concat())?;
    // By this name: it starts xkbcomp through it.
    files.extend(["/bin/sh", "/usr/share/X11/xkb"].map(PathBuf::from));
    Ok(files)
}

/// `attune coop run`, and the library by which programs cooperate then.
pub fn coop_run(options: &Options) -> Vec<PathBuf> {
    ["attune", "libattune_coop_preload.so"].map(|name| options.programs.join(name)).to_vec()
}

/// Of VLC's hundreds of plugins those that show a film without sound on an X server; all of them
/// would not fit into the machine.
const PLUGINS: [&str; 12] = [
    "access/libfilesystem_plugin.so",
    "codec/libavcodec_plugin.so",
    "control/libdummy_plugin.so",
    "demux/libmkv_plugin.so",
    "logger/libconsole_logger_plugin.so",
    "stream_filter/libcache_read_plugin.so",
    "stream_filter/libprefetch_plugin.so",
    "video_chroma/libchain_plugin.so",
    "video_chroma/libi420_rgb_plugin.so",
    "video_chroma/libswscale_plugin.so",
    "video_output/libxcb_window_plugin.so",
    "video_output/libxcb_x11_plugin.so",
];

/// See [`PLUGINS`]; they lie beside VLC's libraries.
pub fn vlc_plugins() -> Result<Vec<PathBuf>> {
    let folder = PathBuf::from("/usr/lib/x86_64-linux-gnu/vlc/plugins");
    let find = |name: &&str| {
        let file = folder.join(name);
        ensure!(file.is_file(), "VLC lacks {}; tools/setup.sh players installs it", file.display());
        Ok(file)
    };
    PLUGINS.iter().map(find).collect()
}
