//! Finds the display server that a program draws through: the program's frames are only as regular
//! as the server's.

use std::os::unix::net::UnixStream;

use attune_linux::socket;

/// The process of the X server of a display such as `:0`: the one that listens at its socket, by
/// the kernel's word.
pub fn server(display: &str) -> Option<u32> {
    let number = display.strip_prefix("unix").unwrap_or(display).strip_prefix(':')?;
    let number: u32 = number.split('.').next()?.parse().ok()?;
    let stream = UnixStream::connect(format!("/tmp/.X11-unix/X{number}")).ok()?;
    let server = socket::credentials(&stream).ok()?;
    Some(server.process).filter(|process| *process > 0)
}
