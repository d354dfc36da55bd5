//! Makes the network where server and clients meet: a loopback of the experiment's own, in which
//! the server's core does the kernel's work on arriving packets.
//!
//! Over plain loopback the sender's core does the receiver's work too, and a client that opens a
//! connection for each request pays for both ends of the handshake: it is busier than the server,
//! which then cannot be overloaded from one other core. Between two machines each pays for what it
//! receives. Receive packet steering gives that work back to the server; a network namespace keeps
//! the setting (and thousands of closed connections) away from everybody else.

use std::ffi::CString;
use std::io::Error;

use anyhow::{Context, Result};

/// Moves the calling thread, and what it starts from now on, into a network of its own whose
/// packets are received on `cpu`. Needs root. On an error the thread may be anywhere in between:
/// end it.
pub fn enter(cpu: u32) -> Result<()> {
    // SAFETY: changes only this thread's view of mounts and networks; no memory is involved.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWNET) })
        .context("a network of its own")?;
    mount(None, "/", None, libc::MS_REC | libc::MS_PRIVATE).context("mounts of its own")?;
    mount(Some("sysfs"), "/sys", Some("sysfs"), 0).context("the network's settings")?;
    bring_up_loopback().context("loopback")?;
    std::fs::write("/sys/class/net/lo/queues/rx-0/rps_cpus", cpu_mask(cpu))
        .context("receive packet steering")
}

/// One CPU as sysfs wants it: hexadecimal, 32 bits to a group, the highest group first.
fn cpu_mask(cpu: u32) -> String {
    let mut mask = format!("{:x}", 1u32 << (cpu % 32));
    for _ in 0..cpu / 32 {
        mask.push_str(",00000000");
    }
    mask
}

fn checked(result: libc::c_int) -> std::io::Result<libc::c_int> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result) }
}

fn mount(
    source: Option<&str>,
    target: &str,
    kind: Option<&str>,
    flags: libc::c_ulong,
) -> Result<()> {
    let word = |word: &str| CString::new(word).context("a word without zero bytes");
    let (source, target, kind) =
        (source.map(word).transpose()?, word(target)?, kind.map(word).transpose()?);
    let pointer =
        |word: &Option<CString>| word.as_ref().map_or(std::ptr::null(), |word| word.as_ptr());
    // SAFETY: the strings live through the call; no data is passed.
    checked(unsafe {
        libc::mount(pointer(&source), target.as_ptr(), pointer(&kind), flags, std::ptr::null())
    })?;
    Ok(())
}

fn bring_up_loopback() -> Result<()> {
    // SAFETY: an ifreq of zeroes is valid; the name fits with room for its end; the socket is
    // closed below.
    unsafe {
        let socket =
            checked(libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0))?;
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
            *to = *from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
        let result = checked(libc::ioctl(socket, libc::SIOCSIFFLAGS as _, &request));
        libc::close(socket);
        result?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks() {
        assert_eq!(cpu_mask(0), "1");
        assert_eq!(cpu_mask(5), "20");
        assert_eq!(cpu_mask(33), "2,00000000");
        assert_eq!(cpu_mask(64), "1,00000000,00000000");
    }
}
