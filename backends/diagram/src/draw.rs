//! Runs Graphviz.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// What a picture is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Graphviz' own text, for further work.
    Dot,
    Svg,
    Png,
}

impl Format {
    /// As a file's ending says.
    pub fn of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()? {
            "dot" => Some(Format::Dot),
            "svg" => Some(Format::Svg),
            "png" => Some(Format::Png),
            _ => None,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    #[error(
        "cannot run Graphviz' `dot` ({0}): install it (Debian: apt install graphviz), \
         or ask for a .dot file"
    )]
    NoGraphviz(io::Error),
    #[error("Graphviz' `dot` failed: {0}")]
    Failed(String),
}

/// The picture, from [`crate::dot`]'s text.
pub fn draw(dot: &str, format: Format) -> Result<Vec<u8>, DrawError> {
    let flags: &[&str] = match format {
        Format::Dot => return Ok(dot.as_bytes().to_vec()),
        Format::Svg => &["-Tsvg"],
        Format::Png => &["-Tpng", "-Gdpi=144"],
    };
    let mut child = Command::new("dot")
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(DrawError::NoGraphviz)?;
    if let Some(mut input) = child.stdin.take() {
        // Graphviz reads all of it before it writes; if it gave up early, its status says so.
        let _ = input.write_all(dot.as_bytes());
    }
    let output = child.wait_with_output().map_err(DrawError::NoGraphviz)?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(DrawError::Failed(String::from_utf8_lossy(&output.stderr).trim().to_string()))
    }
}
