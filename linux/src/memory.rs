//! Memory that processes share: files without a name, and mappings of them.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicI64;

use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fcntl_get_seals, ftruncate,
    memfd_create,
};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// An empty file in memory, which only processes that are given its descriptor can reach. The name
/// is for people who look into /proc.
pub fn file(name: &str) -> io::Result<OwnedFd> {
    Ok(memfd_create(name, MemfdFlags::CLOEXEC)?)
}

/// A file in memory of so many zero bytes.
pub fn zeros(name: &str, bytes: usize) -> io::Result<OwnedFd> {
    let memory = file(name)?;
    ftruncate(&memory, bytes as u64)?;
    Ok(memory)
}

/// The same, whose length can be changed no more: a process that has mapped it can always read all
/// of it.
pub fn fixed_zeros(name: &str, bytes: usize) -> io::Result<OwnedFd> {
    let memory = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&memory, bytes as u64)?;
    fcntl_add_seals(&memory, SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW)?;
    Ok(memory)
}

/// Makes a file so many bytes long and takes the room on its disk for all of them, so that writing
/// through a [`Mapping`] cannot fail for want of it. `StorageFull`: there is not so much.
pub fn reserve(file: impl AsFd, bytes: usize) -> io::Result<()> {
    Ok(fallocate(file, FallocateFlags::empty(), 0, bytes as u64)?)
}

/// A file in memory that holds these bytes and can be changed no more.
pub fn sealed(name: &str, contents: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.write_all(contents)?;
    fcntl_add_seals(&file, SEALED)?;
    Ok(file.into())
}

const SEALED: SealFlags =
    SealFlags::SEAL.union(SealFlags::SHRINK).union(SealFlags::GROW).union(SealFlags::WRITE);

/// Whether it is such a file: to read it neither waits nor finds something else the next time.
pub fn is_sealed(file: impl AsFd) -> bool {
    fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SEALED))
}

/// Memory that this process and others see at the same time, as words that are read and written
/// whole. It stays at one address.
///
/// A process that shrinks the file behind it kills all that read beyond its end (SIGBUS): map files
/// that are sealed, or that come from a process that is trusted so far.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<AtomicI64>,
    bytes: usize,
}

// SAFETY: all access is atomic.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// The first `bytes` of a file.
    pub fn of(memory: BorrowedFd, bytes: usize) -> io::Result<Mapping> {
        Mapping::part(memory, 0, bytes)
    }

    /// `bytes` of a file from there on, a multiple of the size of the machine's pages.
    pub fn part(memory: BorrowedFd, start: usize, bytes: usize) -> io::Result<Mapping> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses a free address.
        let base =
            unsafe { mmap(ptr::null_mut(), bytes, protection, flags, memory, start as u64)? };
        Mapping::at(base.cast(), bytes)
    }

    /// Zeros, shared with the children that this process will fork.
    pub fn with_children(bytes: usize) -> io::Result<Mapping> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses a free address.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), bytes, protection, flags)? };
        Mapping::at(base.cast(), bytes)
    }

    fn at(base: *mut AtomicI64, bytes: usize) -> io::Result<Mapping> {
        let base = NonNull::new(base).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { base, bytes })
    }

    /// Puts another file's memory at the same address. Where this fails, all is as it was.
    pub fn replace(&mut self, memory: BorrowedFd) -> io::Result<()> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: the address and the length are those of a mapping of ours, whose words stay valid
        // atomics.
        unsafe { mmap(self.base.as_ptr().cast(), self.bytes, protection, flags, memory, 0)? };
        Ok(())
    }

    pub fn words(&self) -> &[AtomicI64] {
        // SAFETY: the mapping lasts as long as `self`, is aligned to a page, and every content is a
        // valid atomic.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.bytes / size_of::<i64>()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: our own mapping, which nothing refers to any more.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::sync::atomic::Ordering::SeqCst;

    #[test]
    fn sealed_memory_is_read_and_cannot_be_changed() {
        let contents: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
        let mut file = File::from(sealed("test", &contents).unwrap());
        assert_eq!(file.write_all(b"other").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert!(file.set_len(3).is_err());
        assert!(is_sealed(&file));
        assert!(!is_sealed(zeros("test", 3).unwrap()));
        assert!(!is_sealed(std::io::stdin()));
        io::Seek::rewind(&mut file).unwrap();
        let mut found = Vec::new();
        file.read_to_end(&mut found).unwrap();
        assert_eq!(found, contents);
    }

    #[test]
    fn two_mappings_of_a_file_are_one_memory() {
        let memory = zeros("test", 8192).unwrap();
        let (one, other) = (
            Mapping::of(memory.as_fd(), 8192).unwrap(),
            Mapping::of(memory.as_fd(), 8192).unwrap(),
        );
        assert_eq!(one.words().len(), 1024);
        one.words()[1023].store(42, SeqCst);
        assert_eq!(other.words()[1023].load(SeqCst), 42);
    }

    #[test]
    fn other_memory_takes_its_place_at_the_same_address() {
        let (first, second) = (zeros("first", 4096).unwrap(), zeros("second", 4096).unwrap());
        let mut mapping = Mapping::of(first.as_fd(), 4096).unwrap();
        let address = mapping.words().as_ptr();
        mapping.words()[0].store(1, SeqCst);
        mapping.replace(second.as_fd()).unwrap();
        assert_eq!((mapping.words().as_ptr(), mapping.words()[0].load(SeqCst)), (address, 0));
        let old = Mapping::of(first.as_fd(), 4096).unwrap();
        assert_eq!(old.words()[0].load(SeqCst), 1);
    }

    #[test]
    fn the_length_of_fixed_memory_stays() {
        let memory = fixed_zeros("test", 8192).unwrap();
        let part = Mapping::part(memory.as_fd(), 4096, 4096).unwrap();
        part.words()[1].store(42, SeqCst);
        let whole = Mapping::of(memory.as_fd(), 8192).unwrap();
        assert_eq!(whole.words()[513].load(SeqCst), 42);
        let file = File::from(memory);
        assert!(file.set_len(4096).is_err() && file.set_len(16384).is_err());
    }

    #[test]
    fn room_is_taken_when_it_is_asked_for() {
        let memory = file("test").unwrap();
        reserve(&memory, 8192).unwrap();
        let file = File::from(memory);
        assert_eq!(file.metadata().unwrap().len(), 8192);
        assert!(reserve(File::open("/proc/self/exe").unwrap(), 1).is_err(), "it cannot be written");
    }

    #[test]
    fn nothing_cannot_be_mapped() {
        assert!(Mapping::of(file("test").unwrap().as_fd(), 0).is_err());
        assert!(Mapping::with_children(0).is_err());
    }
}
