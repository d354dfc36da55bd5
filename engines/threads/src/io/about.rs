//! What a descriptor stands for, as far as the kernel knows without asking a file's server.

use std::mem::MaybeUninit;
use std::os::fd::RawFd;

use crate::errno::{Result, check};

/// What tells files apart: device and inode. Those without an inode of their own (eventfd and the
/// like) are not told apart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct File(u32, u32, u64);

/// The file, and whether it is always ready and yet may block: a regular one or a disk. EBADF.
pub fn about(fd: RawFd) -> Result<(File, bool)> {
    let mut about = MaybeUninit::<libc::statx>::zeroed();
    // Without DONT_SYNC a server behind a network is asked, and until it answers the caller blocks.
    let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
    let wanted = libc::STATX_TYPE | libc::STATX_INO;
    // SAFETY: an empty path, and room for what statx writes.
    check(unsafe { libc::statx(fd, c"".as_ptr(), flags, wanted, about.as_mut_ptr()) })?;
    // SAFETY: all-zero bytes are valid, too.
    let about = unsafe { about.assume_init() };
    let sort = libc::mode_t::from(about.stx_mode) & libc::S_IFMT;
    let file = File(about.stx_dev_major, about.stx_dev_minor, about.stx_ino);
    Ok((file, matches!(sort, libc::S_IFREG | libc::S_IFBLK)))
}
