//! GrapheneOS's hardened_malloc, in its default configuration. The crate declares the names of the C library, which ours
//! has; .cargo/config.toml gives the library's own their prefix.

use hardened_malloc_sys as _;

extern "C" {
    fn h_malloc(size: usize) -> *mut c_void;
    fn h_free(block: *mut c_void);
    fn h_free_sized(block: *mut c_void, size: usize);
    fn h_calloc(count: usize, size: usize) -> *mut c_void;
    fn h_realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn h_malloc_usable_size(block: *mut c_void) -> usize;
    fn h_memalign(align: usize, size: usize) -> *mut c_void;
}

export::export!(h_malloc, h_free, h_calloc, h_realloc, h_malloc_usable_size, h_memalign);
export::export_sized_delete!(h_free_sized);
