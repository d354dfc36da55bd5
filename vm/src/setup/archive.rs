//! Debian's archive, through apt with lists and sources of our own: the machine's own sources are
//! neither used nor changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Some suites of the archive, their lists fetched and their signatures checked.
pub struct Archive {
    folder: tempfile::TempDir,
}

/// The keys that Debian's lists are signed with.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

impl Archive {
    /// Fetches the lists of `suites`. Err: apt is missing, the archive cannot be reached or its
    /// signature is wrong.
    pub fn open(mirror: &str, suites: &[&str]) -> Result<Archive> {
        let archive = Archive { folder: tempfile::tempdir()? };
        for folder in ["lists/partial", "cache/archives/partial", "nothing"] {
            fs::create_dir_all(archive.folder.path().join(folder))?;
        }
        let line = |suite: &&str| {
            format!("deb [arch=amd64 target=Packages signed-by={KEYRING}] {mirror} {suite} main\n")
        };
        fs::write(
            archive.folder.path().join("sources.list"),
            suites.iter().map(line).collect::<String>(),
        )?;
        archive.apt("apt-get", &["--error-on=any", "update"]).with_context(|| {
            format!("cannot fetch the lists of {} from {mirror}", suites.join(", "))
        })?;
        Ok(archive)
    }

    /// Names of the packages that match a regular expression.
    pub fn names(&self, expression: &str) -> Result<Vec<String>> {
        let text = self.apt("apt-cache", &["search", "--names-only", expression])?;
        Ok(text
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .map(str::to_owned)
            .collect())
    }

    /// Downloads these packages (`name`, `name/suite`) into `folder`.
    pub fn download(&self, packages: &[&str], folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        let mut command = self.command("apt-get");
        command.arg("download").args(packages).current_dir(folder);
        said(command).map(drop)
    }

    /// Downloads these packages, preferably from `suite`, and what they depend on that this machine
    /// lacks, into `folder`.
    pub fn download_with_needs(&self, packages: &[&str], suite: &str, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        let mut arguments = vec![
            "install",
            "--download-only",
            "--reinstall",
            "--no-install-recommends",
            "-y",
            "-t",
            suite,
        ];
        arguments.extend(packages);
        self.apt("apt-get", &arguments)?;
        for package in debs(&self.folder.path().join("cache/archives"))? {
            let name = package.file_name().context("a package has a name")?;
            fs::copy(&package, folder.join(name))?;
        }
        Ok(())
    }

    fn apt(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let mut command = self.command(program);
        command.args(arguments);
        said(command)
    }

    fn command(&self, program: &str) -> Command {
        let folder = self.folder.path().display();
        let mut command = Command::new(program);
        command.env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C.UTF-8");
        for option in [
            format!("Dir::State::Lists={folder}/lists"),
            format!("Dir::Cache={folder}/cache"),
            format!("Dir::Etc::SourceList={folder}/sources.list"),
            format!("Dir::Etc::SourceParts={folder}/nothing"),
            format!("Dir::Etc::Preferences={folder}/none"),
            format!("Dir::Etc::PreferencesParts={folder}/nothing"),
            // Nothing of the machine's is written: no lock is needed, no other user, no hook.
            "Debug::NoLocking=1".to_owned(),
            "APT::Sandbox::User=".to_owned(),
            "APT::Update::Post-Invoke::=true".to_owned(),
            "Acquire::Languages=none".to_owned(),
            "Acquire::Retries=3".to_owned(),
        ] {
            command.arg("-o").arg(option);
        }
        command.arg("-q");
        command
    }
}

/// The packages in a folder, in the order of their names.
pub fn debs(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths: Vec<_> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "deb"));
    paths.sort();
    Ok(paths)
}

/// Unpacks a package without installing it.
pub fn unpack(package: &Path, into: &Path) -> Result<()> {
    let mut command = Command::new("dpkg-deb");
    command.arg("-x").arg(package).arg(into);
    said(command).map(drop)
}

/// Runs a command for what it says. Err: it failed; what it said.
pub fn said(mut command: Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("cannot run {program}; on Debian it is always there"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        bail!("{program} failed ({}): {}", output.status, words.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
