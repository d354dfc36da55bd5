//! QEMU, virtiofsd and bpftool: the packages of this Debian release, unpacked beside the kernel and
//! not installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::archive::{self, Archive, said};
use super::fetch::hash;
use super::{Progress, Setup};
use crate::cache::{Source, Words};

/// Older ones sometimes crash a guest that loads a scheduler.
const OLDEST_QEMU: u32 = 10;

/// Programs and folders, those of ours relative to the cache.
pub struct Prepared {
    pub qemu: PathBuf,
    pub qemu_version: String,
    pub virtiofsd: PathBuf,
    pub virtiofsd_words: Words,
    pub bpftool: PathBuf,
    pub firmware: Vec<PathBuf>,
    pub libraries: Vec<PathBuf>,
    pub sources: Vec<Source>,
}

/// Fills `folder`, which is `emulator` in the cache that is being made.
pub fn prepare(setup: &Setup, folder: &Path, progress: Progress) -> Result<Prepared> {
    fs::create_dir_all(folder)?;
    let mut prepared = match (&setup.qemu, &setup.virtiofsd) {
        (Some(qemu), Some(virtiofsd)) => Prepared {
            qemu: std::path::absolute(qemu)?,
            qemu_version: String::new(),
            virtiofsd: std::path::absolute(virtiofsd)?,
            virtiofsd_words: Words::Own,
            bpftool: PathBuf::from("bpftool"),
            firmware: vec![],
            libraries: vec![],
            sources: vec![],
        },
        (None, None) => from_debian(setup, folder, progress)?,
        _ => bail!("give both --qemu and --virtiofsd, or none of them"),
    };
    let above = folder.parent().unwrap_or(folder);
    prepared.qemu_version = version(&prepared, above)?;
    prepared.virtiofsd_words = words(&prepared, above)?;
    progress(&format!("QEMU {}", prepared.qemu_version));
    Ok(prepared)
}

impl Prepared {
    /// A program of it, before the cache is in its place.
    pub fn command(&self, program: &Path, cache: &Path) -> Command {
        // A bare name is searched for, all else lies in the cache or is absolute.
        let bare = program.components().count() == 1;
        let mut command = Command::new(if bare { program.to_owned() } else { cache.join(program) });
        let libraries: Vec<_> = self.libraries.iter().map(|path| cache.join(path)).collect();
        if !libraries.is_empty() {
            command.env("LD_LIBRARY_PATH", std::env::join_paths(libraries).unwrap_or_default());
        }
        command
    }
}

fn from_debian(setup: &Setup, folder: &Path, progress: Progress) -> Result<Prepared> {
    let release = debian_release().context(
        "the emulator is fetched from Debian's archive, and this is no Debian: install QEMU 10 or \
            newer and virtiofsd, and name them with --qemu and --virtiofsd",
    )?;
    progress(&format!("fetching the emulator for Debian {release}"));
    let packages = folder.join("packages");
    // Debian 12's own QEMU is too old; its file server is in QEMU's package.
    if release == "bookworm" {
        let archive = Archive::open(&setup.mirror, &["bookworm", "bookworm-backports"])?;
        let wanted =
            ["qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios", "bpftool"];
        archive.download_with_needs(&wanted, "bookworm-backports", &packages)?;
        archive.download(&["qemu-system-common/bookworm"], &folder.join("older"))?;
    } else {
        let archive = Archive::open(&setup.mirror, &[&release])?;
        let wanted = [
            "qemu-system-x86",
            "qemu-system-common",
            "qemu-system-data",
            "seabios",
            "bpftool",
            "virtiofsd",
        ];
        archive.download_with_needs(&wanted, &release, &packages)?;
    }
    let mut sources = vec![];
    for package in archive::debs(&packages)? {
        archive::unpack(&package, folder)?;
        sources.push(source(&package)?);
    }
    let mut virtiofsd = PathBuf::from("emulator/usr/libexec/virtiofsd");
    if folder.join("older").exists() {
        for package in archive::debs(&folder.join("older"))? {
            let whole = folder.join("older/whole");
            fs::create_dir_all(&whole)?;
            archive::unpack(&package, &whole)?;
            fs::rename(whole.join("usr/lib/qemu/virtiofsd"), folder.join("virtiofsd"))
                .with_context(|| format!("no virtiofsd in {}", package.display()))?;
            sources.push(source(&package)?);
        }
        fs::remove_dir_all(folder.join("older"))?;
        virtiofsd = PathBuf::from("emulator/virtiofsd");
    }
    fs::remove_dir_all(&packages)?;
    for needless in ["usr/share/doc", "usr/share/man"] {
        let _ = fs::remove_dir_all(folder.join(needless));
    }
    let within = |paths: [&str; 2]| paths.map(|path| Path::new("emulator").join(path)).to_vec();
    Ok(Prepared {
        qemu: PathBuf::from("emulator/usr/bin/qemu-system-x86_64"),
        qemu_version: String::new(),
        virtiofsd,
        virtiofsd_words: Words::Own,
        bpftool: PathBuf::from("emulator/usr/sbin/bpftool"),
        firmware: within(["usr/share/qemu", "usr/share/seabios"]),
        libraries: within(["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"]),
        sources,
    })
}

fn source(package: &Path) -> Result<Source> {
    let name = package.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Source { from: name, sha256: hash(package)? })
}

/// Such as `trixie`; None: no Debian.
fn debian_release() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.map(|value| value.trim_matches('"').to_owned())
    };
    value("ID").filter(|id| id == "debian")?;
    // Debian's own unstable has no code name there.
    Some(
        value("VERSION_CODENAME")
            .filter(|name| name != "sid")
            .unwrap_or_else(|| "unstable".to_owned()),
    )
}

fn version(prepared: &Prepared, cache: &Path) -> Result<String> {
    let mut command = prepared.command(&prepared.qemu, cache);
    command.arg("--version");
    let text = said(command).context("QEMU does not run")?;
    let version =
        text.split_whitespace().skip_while(|word| *word != "version").nth(1).unwrap_or_default();
    let major = version.split('.').next().and_then(|number| number.parse::<u32>().ok());
    ensure!(
        major.is_some_and(|major| major >= OLDEST_QEMU),
        "{} is QEMU {version:?}; {OLDEST_QEMU} or newer is needed (older ones crash guests that \
            load schedulers)",
        prepared.qemu.display()
    );
    Ok(version.to_owned())
}

fn words(prepared: &Prepared, cache: &Path) -> Result<Words> {
    let mut command = prepared.command(&prepared.virtiofsd, cache);
    command.arg("--help");
    let help = said(command).context("virtiofsd does not run")?;
    Ok(if help.contains("--shared-dir") { Words::Own } else { Words::Qemu })
}
