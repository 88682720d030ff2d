//! jemalloc as TiKV keeps it.

use tikv_jemalloc_sys as je;

export::export!(je::malloc, je::free, je::calloc, je::realloc, je::malloc_usable_size, je::aligned_alloc);
