//! Google's TCMalloc. The crate declares only what Rust needs; its library has the rest.

use libtcmalloc_sys as _;

extern "C" {
    fn TCMallocInternalMalloc(size: usize) -> *mut c_void;
    fn TCMallocInternalFree(block: *mut c_void);
    fn TCMallocInternalCalloc(count: usize, size: usize) -> *mut c_void;
    fn TCMallocInternalRealloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn TCMallocInternalMallocSize(block: *mut c_void) -> usize;
    fn TCMallocInternalMemalign(align: usize, size: usize) -> *mut c_void;
    fn TCMalloc_Internal_ForceCpuCacheActivation();
    fn MallocExtension_Internal_GetPerCpuCachesActive() -> bool;
}

/// The linker takes cpu_cache.o, whose constructor switches the caches per processor on, only if somebody asks for it.
#[used]
#[link_section = ".init_array"]
static ACTIVATE: unsafe extern "C" fn() = TCMalloc_Internal_ForceCpuCacheActivation;

export::export!(
    TCMallocInternalMalloc,
    TCMallocInternalFree,
    TCMallocInternalCalloc,
    TCMallocInternalRealloc,
    TCMallocInternalMallocSize,
    TCMallocInternalMemalign
);

/// The lab asks: without them each free goes by way of FreeSmallSlow.
#[no_mangle]
pub unsafe extern "C" fn peer_caches_per_cpu_are_on() -> bool {
    MallocExtension_Internal_GetPerCpuCachesActive()
}
