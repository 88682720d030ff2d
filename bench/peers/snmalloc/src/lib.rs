//! Microsoft's snmalloc.

use snmalloc_sys::{sn_calloc, sn_free, sn_malloc, sn_malloc_usable_size, sn_realloc, sn_rust_alloc};

export::export!(sn_malloc, sn_free, sn_calloc, sn_realloc, sn_malloc_usable_size, sn_rust_alloc);
