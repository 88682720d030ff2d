//! Microsoft's mimalloc, secured: guard pages, encoded and random free lists, found double frees.

use libmimalloc_sys::{mi_calloc, mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_usable_size};

extern "C" {
    fn mi_version() -> c_int;
}

unsafe fn aligned(align: usize, size: usize) -> *mut c_void {
    mi_malloc_aligned(size, align) as *mut c_void
}

export::export!(mi_malloc, mi_free, mi_calloc, mi_realloc, mi_usable_size, aligned);

/// The lab asks. Under its own name programs might take it for the library's own.
#[no_mangle]
pub unsafe extern "C" fn peer_mi_version() -> c_int {
    mi_version()
}
