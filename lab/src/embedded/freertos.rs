//! FreeRTOS's sources, which a crate carries: fetched by `tools/setup.sh embedded`, MIT licence,
//! not a part of this repository.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::programs;

/// The crate and its version; FreeRTOS is V11.2.0.
const CRATE: &str = "freertos-next-0.12.0";

/// Files of the kernel that a firmware for a Cortex-M3 needs.
const SOURCES: [&str; 5] = [
    "tasks.c",
    "list.c",
    "queue.c",
    "portable/GCC/ARM_CM3/port.c",
    "portable/GCC/ARM_CM3/portmacro.h",
];

/// In XDG_CACHE_HOME or `~/.cache`, where the set-up has put it.
fn folder() -> PathBuf {
    programs::cache().join("attune/freertos").join(CRATE).join("FreeRTOS-Kernel")
}

/// Whether it was fetched.
pub fn available() -> Result<()> {
    ensure!(
        folder().join("tasks.c").is_file(),
        "FreeRTOS's sources are missing: `tools/setup.sh embedded` fetches them"
    );
    Ok(())
}

/// Name and text of each file, for a folder without folders inside.
pub fn files() -> Result<Vec<(String, String)>> {
    available()?;
    let folder = folder();
    let headers = fs::read_dir(folder.join("include"))?;
    let headers = headers.map(|entry| -> Result<PathBuf> { Ok(entry?.path()) });
    let headers = headers.collect::<Result<Vec<PathBuf>>>()?;
    let headers = headers.into_iter().filter(|path| path.extension().is_some_and(|it| it == "h"));
    let sources = SOURCES.into_iter().map(|name| folder.join(name));
    let read = |path: PathBuf| -> Result<(String, String)> {
        let name = path.file_name().context("a file")?.to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok((name, text))
    };
    headers.chain(sources).map(read).collect()
}
