//! The display server that a program draws through: its frames are only as regular as the server's.

use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// The process of the X server of a display such as `:0`, by the kernel's word for who listens at its socket.
pub fn server(display: &str) -> Option<u32> {
    let number = display.strip_prefix("unix").unwrap_or(display).strip_prefix(':')?;
    let number: u32 = number.split('.').next()?.parse().ok()?;
    let socket = UnixStream::connect(format!("/tmp/.X11-unix/X{number}")).ok()?;
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `peer`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    if result == 0 { u32::try_from(peer.pid).ok().filter(|&process| process > 0) } else { None }
}
