//! Google's TCMalloc. The crate declares only what Rust needs; its library has the rest.

use libtcmalloc_sys as _;

extern "C" {
    fn TCMallocInternalMalloc(size: usize) -> *mut c_void;
    fn TCMallocInternalFree(block: *mut c_void);
    fn TCMallocInternalCalloc(count: usize, size: usize) -> *mut c_void;
    fn TCMallocInternalRealloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn TCMallocInternalMallocSize(block: *mut c_void) -> usize;
    fn TCMallocInternalMemalign(align: usize, size: usize) -> *mut c_void;
}

export::export!(
    TCMallocInternalMalloc,
    TCMallocInternalFree,
    TCMallocInternalCalloc,
    TCMallocInternalRealloc,
    TCMallocInternalMallocSize,
    TCMallocInternalMemalign
);
