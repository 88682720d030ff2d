//! The C library's malloc family over an allocator's own functions.
//!
//! Nothing here may allocate, and nothing may need what a program has only after its start.

#![no_std]

use core::ffi::{c_int, c_void};

extern "C" {
    fn __errno_location() -> *mut c_int;
}

pub const EINVAL: c_int = 22;
pub const ENOMEM: c_int = 12;
pub const PAGE: usize = 4096;

/// What the C library's functions promise when there is no memory.
#[inline(always)]
pub fn or_no_memory(block: *mut c_void) -> *mut c_void {
    if block.is_null() {
        unsafe { *__errno_location() = ENOMEM };
    }
    block
}

#[inline(always)]
pub fn is_alignment(align: usize) -> bool {
    align.is_power_of_two()
}

/// Larger requests are refused: pointer differences would not fit. Some allocators do not look.
#[inline(always)]
pub fn is_legal(size: usize) -> bool {
    size <= isize::MAX as usize
}

/// Exports the family over five functions with the C library's signatures, and one that takes alignment and size.
#[macro_export]
macro_rules! export {
    ($malloc:path, $free:path, $calloc:path, $realloc:path, $usable:path, $aligned:path) => {
        use core::ffi::{c_int, c_void};

        #[no_mangle]
        pub unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
            if !$crate::is_legal(size) {
                return $crate::or_no_memory(core::ptr::null_mut());
            }
            $crate::or_no_memory($malloc(size) as *mut c_void)
        }

        #[no_mangle]
        pub unsafe extern "C" fn free(block: *mut c_void) {
            $free(block as _)
        }

        #[no_mangle]
        pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
            match count.checked_mul(size) {
                Some(bytes) if $crate::is_legal(bytes) => $crate::or_no_memory($calloc(count, size) as *mut c_void),
                _ => $crate::or_no_memory(core::ptr::null_mut()),
            }
        }

        #[no_mangle]
        pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
            if !$crate::is_legal(size) {
                return $crate::or_no_memory(core::ptr::null_mut());
            }
            if block.is_null() {
                return malloc(size);
            }
            $crate::or_no_memory($realloc(block as _, size) as *mut c_void)
        }

        #[no_mangle]
        pub unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void {
            match count.checked_mul(size) {
                Some(bytes) => realloc(block, bytes),
                None => $crate::or_no_memory(core::ptr::null_mut()),
            }
        }

        #[no_mangle]
        pub unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
            if !$crate::is_alignment(align) || !$crate::is_legal(size) {
                return $crate::or_no_memory(core::ptr::null_mut());
            }
            $crate::or_no_memory($aligned(align, size) as *mut c_void)
        }

        #[no_mangle]
        pub unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
            memalign(align, size)
        }

        #[no_mangle]
        pub unsafe extern "C" fn posix_memalign(at: *mut *mut c_void, align: usize, size: usize) -> c_int {
            if !$crate::is_alignment(align) || align % core::mem::size_of::<usize>() != 0 {
                return $crate::EINVAL;
            }
            let block = memalign(align, size);
            if block.is_null() {
                return $crate::ENOMEM;
            }
            *at = block;
            0
        }

        #[no_mangle]
        pub unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
            memalign($crate::PAGE, size)
        }

        #[no_mangle]
        pub unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
            match size.checked_add($crate::PAGE - 1) {
                Some(sum) => memalign($crate::PAGE, sum & !($crate::PAGE - 1)),
                None => $crate::or_no_memory(core::ptr::null_mut()),
            }
        }

        #[no_mangle]
        pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
            if block.is_null() {
                0
            } else {
                $usable(block as _)
            }
        }
    };
}

/// Exports C++'s `operator delete` with a size, for allocators that compare it with the block's. For no bytes, the
/// language's library has asked for one.
#[macro_export]
macro_rules! export_sized_delete {
    ($free_sized:path) => {
        #[no_mangle]
        pub unsafe extern "C" fn _ZdlPvm(block: *mut c_void, size: usize) {
            $free_sized(block, size.max(1))
        }

        #[no_mangle]
        pub unsafe extern "C" fn _ZdaPvm(block: *mut c_void, size: usize) {
            $free_sized(block, size.max(1))
        }
    };
}
