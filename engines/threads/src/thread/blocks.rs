//! Memory of threads that have ended, kept for new ones. What the allocator does for a block took a
//! quarter of the instructions of creating a thread and joining it.
//!
//! Invariant: all blocks of a pool have records of one size, and are as [`layout`] says.

use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error};
use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use attune_abi as abi;

use super::{GAP, RECORD_OFFSET, ThreadId, ThreadRef, layout};

/// So many blocks are kept, some 10 MB where records are small.
const KEPT: usize = 16 * 1024;

pub struct BlockPool {
    /// Bytes of a record.
    record_size: usize,
    free: Vec<NonNull<u8>>,
}

impl BlockPool {
    pub fn new(record_size: usize) -> BlockPool {
        BlockPool { record_size: record_size.max(size_of::<abi::Thread>()), free: Vec::new() }
    }

    /// As [`ThreadRef::allocate`].
    pub fn create(&mut self, id: ThreadId, name: &CStr, userdata: *mut c_void) -> ThreadRef {
        let block = match self.free.pop() {
            Some(block) => {
                // SAFETY: the record lies there, and nobody uses the block.
                unsafe { block.byte_add(GAP + RECORD_OFFSET).write_bytes(0, self.record_size) };
                block
            }
            None => allocate(self.record_size),
        };
        // SAFETY: the record is zeroed, and nobody else has the block.
        unsafe { ThreadRef::place(block, id, name, userdata, self.record_size) }
    }

    /// Ends what the block holds, which comes from here or from [`ThreadRef::allocate`] with the
    /// same size of a record.
    ///
    /// # Safety
    /// As of [`ThreadRef::free`].
    pub unsafe fn forget(&mut self, thread: ThreadRef) {
        // SAFETY: the caller's.
        let block = unsafe { thread.end() };
        if self.free.len() < KEPT {
            self.free.push(block);
        } else {
            // SAFETY: nobody uses the block.
            unsafe { free(block, self.record_size) };
        }
    }
}

/// A zeroed block.
pub(super) fn allocate(record_size: usize) -> NonNull<u8> {
    let layout = layout(record_size);
    // SAFETY: the layout is larger than a Thread, so not empty.
    let block = unsafe { alloc_zeroed(layout) };
    NonNull::new(block).unwrap_or_else(|| handle_alloc_error(layout))
}

/// # Safety
/// The block comes from [`allocate`] with the same size, and nobody uses it.
pub(super) unsafe fn free(block: NonNull<u8>, record_size: usize) {
    // SAFETY: the caller's.
    unsafe { dealloc(block.as_ptr(), layout(record_size)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_used_again_and_its_record_begins_anew() {
        let size = size_of::<abi::Thread>() + 64;
        let mut pool = BlockPool::new(size);
        let first = pool.create(1, c"first", std::ptr::null_mut());
        first.detached.set(true);
        // SAFETY: the record has that many bytes, and the thread is not used once it is forgotten.
        unsafe {
            let attribute = |thread: ThreadRef| thread.record().byte_add(size - 8).cast::<u64>();
            attribute(first).write(7);
            pool.forget(first);
            let second = pool.create(2, c"second", std::ptr::null_mut());
            assert!(second == first && second.id == 2 && !second.detached.get());
            assert_eq!(((*second.record()).id, attribute(second).read()), (2, 0));
            pool.forget(second);
        }
    }
}
