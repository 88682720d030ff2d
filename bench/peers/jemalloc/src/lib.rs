//! jemalloc as TiKV keeps it.

use core::ffi::c_char;
use tikv_jemalloc_sys as je;

export::export!(je::malloc, je::free, je::calloc, je::realloc, je::malloc_usable_size, je::aligned_alloc);

/// The lab asks for the version. Under its own name programs would use it: some look whether it is there.
#[no_mangle]
pub unsafe extern "C" fn peer_mallctl(
    name: *const c_char, old: *mut c_void, old_size: *mut usize, new: *mut c_void, new_size: usize,
) -> c_int {
    je::mallctl(name, old, old_size, new, new_size)
}
