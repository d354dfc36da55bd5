//! What `attune vm setup` fetched, and where it lies.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::Error;

/// Which of Debian's kernels a machine boots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kernel {
    /// The one for clouds, which boots fastest.
    #[default]
    Cloud,
    /// The one for any machine. It has drivers, and tests of sleep (`/sys/power/pm_test`).
    Full,
}

/// A folder with a kernel, an emulator and a server of files, complete and checked:
///
/// | in the folder | what |
/// |---|---|
/// | `kernel/vmlinux` | the kernel as ELF: what is booted, and its BTF |
/// | `kernel/vmlinux.h` | its types as C, for BPF programs |
/// | `kernel/config` | its settings, if its package was given |
/// | `kernel/overlay.ko.xz` | its module for a layer over other files, if its package was given |
/// | `emulator/` | QEMU and virtiofsd with the libraries that the machine lacks |
/// | `setup.json` | versions, addresses and hashes |
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    pub(crate) contents: Contents,
}

/// setup.json.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Contents {
    /// As `uname -r` says.
    pub kernel_release: String,
    /// Where each file came from, and its SHA-256.
    pub sources: Vec<Source>,
    pub qemu_version: String,
    /// Programs and folders; relative ones are in the cache.
    pub qemu: PathBuf,
    pub virtiofsd: PathBuf,
    pub virtiofsd_words: Words,
    pub firmware: Vec<PathBuf>,
    pub libraries: Vec<PathBuf>,
}

/// The options that a virtiofsd understands: as it was while it was a part of QEMU, or since it is
/// a project of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Words {
    Qemu,
    Own,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Source {
    pub from: String,
    pub sha256: String,
}

impl Cache {
    /// Where it is without other word: `ATTUNE_VM_DIR`, or `attune/vm` in XDG_CACHE_HOME, or
    /// `~/.cache/attune/vm`.
    pub fn default_folder() -> PathBuf {
        let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = || set("XDG_CACHE_HOME").filter(|path| path.is_absolute());
        let home = || set("HOME").unwrap_or_else(|| PathBuf::from("/")).join(".cache");
        set("ATTUNE_VM_DIR").unwrap_or_else(|| cache().unwrap_or_else(home).join("attune/vm"))
    }

    /// Where a set-up with that kernel is without other word: the one with the full kernel lies
    /// beside the other, with `-full` behind its name.
    pub fn folder_for(kernel: Kernel) -> PathBuf {
        let folder = Cache::default_folder();
        match kernel {
            Kernel::Cloud => folder,
            Kernel::Full => {
                let mut name = folder.file_name().unwrap_or_default().to_owned();
                name.push("-full");
                folder.with_file_name(name)
            }
        }
    }

    /// Opens what was set up in `folder`. Err: [`Error::NotSetUp`], or its record cannot be read.
    pub fn open(folder: &Path) -> Result<Cache, Error> {
        let record = folder.join("setup.json");
        let Ok(text) = fs::read_to_string(&record) else {
            return Err(Error::NotSetUp(folder.to_owned()));
        };
        let contents = serde_json::from_str(&text).with_context(|| {
            format!("{} is damaged; `attune vm setup --force` makes it anew", record.display())
        })?;
        let folder = std::path::absolute(folder)?;
        Ok(Cache { folder, contents })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// As `uname -r` says.
    pub fn kernel_release(&self) -> &str {
        &self.contents.kernel_release
    }

    /// Such as `10.0.2`. Deterministic runs are the same only under the same version.
    pub fn qemu_version(&self) -> &str {
        &self.contents.qemu_version
    }

    /// The kernel as ELF, with its BTF in the section `.BTF`.
    pub fn vmlinux(&self) -> PathBuf {
        self.folder.join("kernel/vmlinux")
    }

    /// The kernel's types as C, for BPF programs.
    pub fn vmlinux_h(&self) -> PathBuf {
        self.folder.join("kernel/vmlinux.h")
    }

    /// The kernel's settings; there may be none.
    pub fn kernel_config(&self) -> Option<PathBuf> {
        Some(self.folder.join("kernel/config")).filter(|path| path.exists())
    }

    pub(crate) fn overlay_module(&self) -> Option<PathBuf> {
        Some(self.folder.join("kernel/overlay.ko.xz")).filter(|path| path.exists())
    }

    pub fn qemu(&self) -> PathBuf {
        self.folder.join(&self.contents.qemu)
    }

    pub fn virtiofsd(&self) -> PathBuf {
        self.folder.join(&self.contents.virtiofsd)
    }

    /// Folders with the emulator's firmware.
    pub(crate) fn firmware(&self) -> Vec<PathBuf> {
        self.contents.firmware.iter().map(|path| self.folder.join(path)).collect()
    }

    /// A program of the cache, with its libraries.
    pub(crate) fn command(&self, program: PathBuf) -> std::process::Command {
        let mut command = std::process::Command::new(program);
        if !self.contents.libraries.is_empty() {
            let libraries = self.contents.libraries.iter().map(|path| self.folder.join(path));
            command.env("LD_LIBRARY_PATH", env::join_paths(libraries).unwrap_or_default());
        }
        command
    }
}
