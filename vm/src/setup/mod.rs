//! `attune vm setup`: fetches a kernel and an emulator, checks them, and keeps them in the cache.
//!
//! Everything is made in a folder beside the cache that takes its place when it is complete: an
//! interrupted set-up leaves the former one, or none.

mod archive;
mod emulator;
mod fetch;
mod kernel;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cache::{Cache, Contents, Kernel};

/// Where things come from.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The cache to make.
    pub folder: PathBuf,
    /// Which of Debian's kernels.
    pub which: Kernel,
    /// Copies of the kernel to take instead of Debian's newest: each a file or an address of a
    /// package (.deb) or of a kernel image, with `#sha256=..` behind it; an address must have that.
    /// Together they hold the image, and may hold its settings.
    pub kernel: Vec<String>,
    /// Programs to take instead of Debian's.
    pub qemu: Option<PathBuf>,
    pub virtiofsd: Option<PathBuf>,
    /// Debian's archive, or a mirror of it.
    pub mirror: String,
}

/// Called with what is being done, in a few words.
pub type Progress<'a> = &'a dyn Fn(&str);

impl Setup {
    /// The default, as far as environment variables do not say otherwise: `ATTUNE_VM_KERNEL`
    /// (separated by spaces), `ATTUNE_VM_QEMU`, `ATTUNE_VM_VIRTIOFSD`, `ATTUNE_VM_MIRROR`.
    pub fn from_environment(folder: PathBuf, which: Kernel) -> Setup {
        let set = |name: &str| env::var(name).ok().filter(|value| !value.trim().is_empty());
        Setup {
            folder,
            which,
            kernel: set("ATTUNE_VM_KERNEL")
                .map_or(vec![], |text| text.split_whitespace().map(str::to_owned).collect()),
            qemu: set("ATTUNE_VM_QEMU").map(PathBuf::from),
            virtiofsd: set("ATTUNE_VM_VIRTIOFSD").map(PathBuf::from),
            mirror: set("ATTUNE_VM_MIRROR")
                .unwrap_or_else(|| "http://deb.debian.org/debian".to_owned()),
        }
    }

    /// Fetches and checks; returns the new cache. Err: what could not be had, and what to do; the
    /// former cache stays.
    pub fn run(&self, progress: Progress) -> Result<Cache> {
        anyhow::ensure!(
            cfg!(all(target_os = "linux", target_arch = "x86_64")),
            "the machine's programs and kernel are x86-64 Linux's, and this machine's are not"
        );
        let above = self.folder.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(above).with_context(|| format!("cannot make {}", above.display()))?;
        let new = tempfile::Builder::new().prefix("vm-setup-").tempdir_in(above)?;
        fs::create_dir_all(new.path().join("kernel"))?;

        let emulator = emulator::prepare(self, &new.path().join("emulator"), progress)?;
        let kernel = kernel::prepare(self, new.path(), &emulator, progress)?;
        let contents = Contents {
            kernel_release: kernel.release,
            sources: [kernel.sources, emulator.sources].concat(),
            qemu_version: emulator.qemu_version,
            qemu: emulator.qemu,
            virtiofsd: emulator.virtiofsd,
            virtiofsd_words: emulator.virtiofsd_words,
            firmware: emulator.firmware,
            libraries: emulator.libraries,
        };
        fs::write(
            new.path().join("setup.json"),
            format!("{:#}\n", serde_json::to_value(&contents)?),
        )?;
        self.replace(new)?;
        Ok(Cache::open(&self.folder)?)
    }

    fn replace(&self, new: tempfile::TempDir) -> Result<()> {
        let old = self.folder.with_extension(format!("old-{}", std::process::id()));
        if self.folder.exists() {
            // Only what a set-up made is thrown away.
            let ours = self.folder.join("setup.json").exists()
                || fs::read_dir(&self.folder)?.next().is_none();
            anyhow::ensure!(
                ours,
                "{} is there and is no set-up of ours; give another --dir",
                self.folder.display()
            );
            fs::rename(&self.folder, &old)?;
        }
        let new = new.keep();
        set_readable(&new)?;
        fs::rename(&new, &self.folder)
            .with_context(|| format!("cannot make {}", self.folder.display()))?;
        if old.exists() {
            fs::remove_dir_all(&old)?;
        }
        Ok(())
    }
}

/// A temporary folder is only its owner's; a cache may be shared.
fn set_readable(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))
}
