//! The guest's first files: its first program, its orders, the kernel's settings, and what is
//! packed for a deterministic machine.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cpio::newc;

/// The guest's first program, guest/init.c.
const INIT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/init"));

const FOLDER: u32 = 0o040755;
const WRITABLE_FOLDER: u32 = 0o041777;
const LINK: u32 = 0o120777;
const REGULAR: u32 = 0o100000;

/// An archive in the making. Equal files give equal bytes: no times, no owners, no inode numbers of
/// the host.
pub struct Initramfs {
    out: io::BufWriter<File>,
    present: BTreeSet<PathBuf>,
    inode: u32,
}

impl Initramfs {
    /// Begins one with the first program and its orders.
    pub fn new(out: File, orders: &[u8]) -> Result<Initramfs> {
        let mut archive =
            Initramfs { out: io::BufWriter::new(out), present: BTreeSet::new(), inode: 1 };
        for folder in ["/proc", "/sys", "/dev", "/run", "/boot"] {
            archive.folder(Path::new(folder), FOLDER)?;
        }
        for folder in ["/tmp", "/var/tmp"] {
            archive.folder(Path::new(folder), WRITABLE_FOLDER)?;
        }
        archive.entry(Path::new("/init"), REGULAR | 0o755, INIT)?;
        archive.entry(Path::new("/command"), REGULAR | 0o600, orders)?;
        Ok(archive)
    }

    /// A copy of one of the host's files (or links), at `at`; its folders are made.
    pub fn file(&mut self, from: &Path, at: &Path) -> Result<()> {
        let told = || format!("cannot pack {}", from.display());
        let about = fs::symlink_metadata(from).with_context(told)?;
        if about.is_symlink() {
            let target = fs::read_link(from).with_context(told)?;
            self.entry(at, LINK, target.as_os_str().as_bytes())
        } else if about.is_dir() {
            self.folder(at, FOLDER)
        } else {
            let mode = REGULAR | (about.permissions().mode() & 0o7777);
            self.entry(at, mode, &fs::read(from).with_context(told)?)
        }
    }

    /// An empty folder, with the folders above it.
    pub fn folder(&mut self, at: &Path, mode: u32) -> Result<()> {
        self.entry(at, mode, b"")
    }

    /// Ends the archive, by an entry that the guest looks for: without it there was no room for
    /// all.
    pub fn finish(mut self) -> Result<File> {
        self.entry(Path::new("/complete"), REGULAR | 0o444, b"")?;
        let mut out = newc::trailer(self.out).context("cannot write the guest's first files")?;
        out.flush()?;
        Ok(out.into_inner().map_err(io::IntoInnerError::into_error)?)
    }

    fn entry(&mut self, at: &Path, mode: u32, bytes: &[u8]) -> Result<()> {
        if at == Path::new("/") || !self.present.insert(at.to_owned()) {
            return Ok(());
        }
        if let Some(above) = at.parent() {
            self.folder(above, FOLDER)?;
        }
        let name = at.strip_prefix("/").unwrap_or(at).to_str();
        let name =
            name.with_context(|| format!("cannot pack {}: its name is no UTF-8", at.display()))?;
        let length = u32::try_from(bytes.len())
            .with_context(|| format!("{} is over 4 GiB", at.display()))?;
        let header = newc::Builder::new(name).ino(self.inode).nlink(1).mode(mode);
        self.inode += 1;
        let mut writer = header.write(&mut self.out, length);
        writer.write_all(bytes)?;
        writer.finish()?;
        Ok(())
    }
}
