//! A line of bytes to a device: a terminal's, a file's, or standard input and output.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Both directions of a line, which never make anybody wait; -: standard input and output.
pub fn open(path: &Path) -> io::Result<(File, File)> {
    if path == Path::new("-") {
        let ends = (
            File::from(io::stdin().as_fd().try_clone_to_owned()?),
            File::from(io::stdout().as_fd().try_clone_to_owned()?),
        );
        for end in [&ends.0, &ends.1] {
            // SAFETY: flags of a descriptor that is open.
            if unsafe { libc::fcntl(end.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        return Ok(ends);
    }
    let options = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).write(true).custom_flags(options).open(path)?;
    raw(&file)?;
    Ok((file.try_clone()?, file))
}

/// A terminal's line passes all bytes as they are; its speed stays.
fn raw(file: &File) -> io::Result<()> {
    let mut settings = std::mem::MaybeUninit::uninit();
    // SAFETY: the settings are filled in if the call succeeds.
    unsafe {
        if libc::isatty(file.as_raw_fd()) == 0 {
            return Ok(());
        }
        if libc::tcgetattr(file.as_raw_fd(), settings.as_mut_ptr()) < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut settings = settings.assume_init();
        libc::cfmakeraw(&mut settings);
        if libc::tcsetattr(file.as_raw_fd(), libc::TCSANOW, &settings) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
