//! Microsoft's snmalloc with all that it has against memory bugs.

use snmalloc_sys::{sn_calloc, sn_free, sn_malloc, sn_malloc_usable_size, sn_realloc, sn_rust_alloc, sn_rust_dealloc};

/// Of no bytes the library would give a block of no alignment.
unsafe fn aligned(align: usize, size: usize) -> *mut c_void {
    sn_rust_alloc(align, size.max(1))
}

unsafe fn free_sized(block: *mut c_void, size: usize) {
    sn_rust_dealloc(block, 1, size);
}

export::export!(sn_malloc, sn_free, sn_calloc, sn_realloc, sn_malloc_usable_size, aligned);
export::export_sized_delete!(free_sized);
