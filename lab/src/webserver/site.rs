//! Writes the files that the servers serve: 64 of 0.6 to 26 kB, as a web application has them, and
//! 8 of 1 MB (2^20 bytes). Their bytes are random, so that the generator notices a piece of one
//! file in the place of another.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::http::schedule::Target;

const SMALL: u64 = 64;
const LARGE: u64 = 8;

/// Writes the files below `directory` and returns what can be asked for.
pub fn create(directory: &Path) -> Result<Vec<Target>> {
    let small =
        (0..SMALL).map(|i| (format!("/small/{i}"), 600 + (26_000 - 600) * i / (SMALL - 1), false));
    let large = (0..LARGE).map(|i| (format!("/large/{i}"), 1 << 20, true));
    let mut random = fastrand::Rng::with_seed(1);
    let mut targets = Vec::new();
    for (path, size, large) in small.chain(large) {
        let mut body = vec![0; size as usize];
        random.fill(&mut body);
        let file = directory.join(&path[1..]);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        }
        fs::write(&file, &body).with_context(|| format!("writing {}", file.display()))?;
        targets.push(Target { path, body, large });
    }
    Ok(targets)
}
