//! The kernel: Debian's newest of the kind that is wanted, or a copy. It is unpacked to ELF, which
//! boots fastest, and its BTF is checked.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::archive::{self, Archive, said};
use super::emulator::Prepared as Emulator;
use super::{Progress, Setup, fetch};
use crate::cache::{Kernel, Source};

/// The suite whose newest kernel is taken: the stable ones' have no sched_ext, or BTF that no
/// scheduler loads with.
const SUITE: &str = "sid";
/// BTF that schedulers load with names this function.
const NEEDED: &str = "scx_bpf_kick_cpu_impl";

pub struct Prepared {
    pub release: String,
    pub sources: Vec<Source>,
}

/// Fills `kernel/` in the cache that is being made.
pub fn prepare(
    setup: &Setup,
    cache: &Path,
    emulator: &Emulator,
    progress: Progress,
) -> Result<Prepared> {
    let folder = cache.join("kernel");
    let downloads = folder.join("downloads");
    let mut sources = vec![];
    let mut files = vec![];
    if setup.kernel.is_empty() {
        progress("looking for Debian's newest kernel");
        let archive = Archive::open(&setup.mirror, &[SUITE])?;
        let newest = newest(&archive, setup.which)?;
        progress(&format!("fetching {newest}"));
        let [base, modules] =
            ["linux-base-", "linux-modules-"].map(|kind| newest.replace("linux-binary-", kind));
        archive.download(&[&newest, &base, &modules], &downloads)?;
        files = archive::debs(&downloads)?;
        for file in &files {
            let from = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            sources.push(Source { from, sha256: fetch::hash(file)? });
        }
    } else {
        for what in &setup.kernel {
            progress(&format!("taking {}", what.split('#').next().unwrap_or(what)));
            let (file, source) = fetch::fetch(what, &downloads)?;
            files.push(file);
            sources.push(source);
        }
    }
    let unpacked = folder.join("unpacked");
    fs::create_dir_all(&unpacked)?;
    let mut image = None;
    for file in &files {
        if file.extension().is_some_and(|extension| extension == "deb") {
            archive::unpack(file, &unpacked)?;
        } else {
            image = Some(file.clone());
        }
    }
    let image = image
        .or_else(|| find(&unpacked, "vmlinuz"))
        .context("there is no kernel image (vmlinuz) in what was given")?;

    progress("unpacking the kernel");
    let bytes = fs::read(&image).with_context(|| format!("cannot read {}", image.display()))?;
    let release =
        release(&bytes).with_context(|| format!("{} is no kernel image", image.display()))?;
    let elf = if bytes.starts_with(b"\x7fELF") { bytes } else { payload(&bytes)? };
    check(&elf)
        .with_context(|| format!("kernel {release} from {} does not serve", sources[0].from))?;
    fs::write(folder.join("vmlinux"), elf)?;
    if let Some(config) = find(&unpacked, "config") {
        fs::copy(config, folder.join("config"))?;
    }
    match find(&unpacked, "overlay.ko.xz") {
        Some(module) => drop(fs::copy(module, folder.join("overlay.ko.xz"))?),
        None => progress(
            "without its overlay module: in the guest only /tmp and /var/tmp can be written",
        ),
    }
    progress("writing vmlinux.h");
    let mut command = emulator.command(&emulator.bpftool, cache);
    command.args(["btf", "dump", "file"]).arg(folder.join("vmlinux")).args(["format", "c"]);
    let header = said(command).context("bpftool cannot write the kernel's types as C")?;
    fs::write(folder.join("vmlinux.h"), header)?;

    for scratch in [downloads, unpacked] {
        if scratch.exists() {
            fs::remove_dir_all(scratch)?;
        }
    }
    progress(&format!("kernel {release}"));
    Ok(Prepared { release, sources })
}

/// The package with the newest image.
fn newest(archive: &Archive, which: Kernel) -> Result<String> {
    let kind = match which {
        Kernel::Cloud => "-cloud-amd64",
        Kernel::Full => "-amd64",
    };
    // A version has no dash in it.
    let names = archive.names(&format!("^linux-binary-[0-9][^-]*{kind}$"))?;
    let numbers = |name: &String| -> Vec<u32> {
        name.split(|letter: char| !letter.is_ascii_digit())
            .filter_map(|number| number.parse().ok())
            .collect()
    };
    names.into_iter().max_by_key(numbers).with_context(|| {
        format!(
            "Debian's {SUITE} has no linux-binary-..{kind} any more; name a copy of a kernel with \
                --kernel"
        )
    })
}

/// The first file of that name, or whose name begins with it and a dash.
fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let mut entries: Vec<_> =
        fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    entries.sort();
    let fits = |path: &Path| {
        let its = path.file_name().and_then(|its| its.to_str()).unwrap_or_default();
        path.is_file()
            && its.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let here = entries.iter().find(|path| fits(path)).cloned();
    here.or_else(|| {
        entries
            .iter()
            .filter(|path| path.is_dir() && !path.is_symlink())
            .find_map(|path| find(path, name))
    })
}

/// Little-endian number in an image's header.
fn number<const N: usize>(image: &[u8], at: usize) -> Option<usize> {
    let bytes = image.get(at..at + N)?;
    Some(bytes.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
}

/// As `uname -r` will say: the header of a bzImage points to it, an ELF holds it in the kernel's
/// banner.
fn release(image: &[u8]) -> Option<String> {
    let text = if image.starts_with(b"\x7fELF") {
        let banner = b"Linux version ";
        let at = image.windows(banner.len()).position(|window| window == banner)?;
        &image[at + banner.len()..]
    } else {
        (image.get(0x202..0x206)? == b"HdrS").then_some(())?;
        image.get(number::<2>(image, 0x20e)? + 0x200..)?
    };
    let text = text.split(|byte| *byte == b' ' || *byte == 0).next()?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// The ELF inside a bzImage.
fn payload(image: &[u8]) -> Result<Vec<u8>> {
    let setup = match number::<1>(image, 0x1f1) {
        Some(0) => 4,
        other => other.unwrap_or(0),
    };
    let at = number::<4>(image, 0x248).unwrap_or(0) + (setup + 1) * 512;
    let length = number::<4>(image, 0x24c).unwrap_or(0);
    let payload = image.get(at..at + length).context("the kernel image is cut off")?;
    if !payload.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        bail!(
            "the kernel image is not packed with zstd, the only form that is understood; give the \
                ELF (vmlinux) itself"
        );
    }
    let mut elf = vec![];
    let mut decoder =
        ruzstd::decoding::StreamingDecoder::new(payload).context("the kernel image is damaged")?;
    decoder.read_to_end(&mut elf).context("the kernel image is damaged")?;
    ensure!(elf.starts_with(b"\x7fELF"), "the kernel image holds no ELF");
    Ok(elf)
}

/// Whether schedulers load into this kernel: its types must name what they call.
fn check(elf: &[u8]) -> Result<()> {
    let names = |name: &[u8]| elf.windows(name.len()).any(|window| window == name);
    // Between two NULs: as a name in the BTF.
    let name = [b"\0", NEEDED.as_bytes(), b"\0"].concat();
    ensure!(names(b"sched_ext_ops\0"), "it has no sched_ext");
    ensure!(
        names(&name),
        "its BTF lacks {NEEDED}, so that no scheduler loads; take another kernel (--kernel, or \
            later when Debian has a newer one)"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_kernel_is_told() {
        assert_eq!(release(b"hello"), None);
        assert!(payload(&[0; 1024]).is_err());
        assert!(
            check(b"\x7fELF sched_ext_ops\0").expect_err("no BTF").to_string().contains(NEEDED)
        );
        assert!(check(b"\x7fELF").expect_err("no sched_ext").to_string().contains("no sched_ext"));
        assert!(check(b"\x7fELF\0sched_ext_ops\0scx_bpf_kick_cpu_impl\0").is_ok());
    }
}
