//! Microsoft's snmalloc.

use snmalloc_sys::{sn_calloc, sn_free, sn_malloc, sn_malloc_usable_size, sn_realloc, sn_rust_alloc};

/// Of no bytes the library would give a block of no alignment.
unsafe fn aligned(align: usize, size: usize) -> *mut c_void {
    sn_rust_alloc(align, size.max(1))
}

export::export!(sn_malloc, sn_free, sn_calloc, sn_realloc, sn_malloc_usable_size, aligned);
