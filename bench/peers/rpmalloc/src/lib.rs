//! rpmalloc. It must be told when a thread ends, or the thread's memory is never used again; as its own preloadable
//! library does, ours stands before pthread_create for that.

use core::ffi::c_char;
use core::sync::atomic::{AtomicU32, Ordering};
use rpmalloc_sys::{rpaligned_alloc, rpcalloc, rpfree, rpmalloc, rpmalloc_usable_size, rprealloc};

export::export!(rpmalloc, rpfree, rpcalloc, rprealloc, rpmalloc_usable_size, rpaligned_alloc);

type Routine = extern "C" fn(*mut c_void) -> *mut c_void;
type Create = unsafe extern "C" fn(*mut usize, *const c_void, Routine, *mut c_void) -> c_int;

extern "C" {
    fn rpmalloc_thread_initialize();
    fn rpmalloc_thread_finalize(release_caches: c_int);
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn pthread_key_create(key: *mut u32, destructor: extern "C" fn(*mut c_void)) -> c_int;
    fn pthread_setspecific(key: u32, value: *const c_void) -> c_int;
}

const RTLD_NEXT: *mut c_void = -1isize as *mut c_void;
const NO_KEY: u32 = u32::MAX;

static KEY: AtomicU32 = AtomicU32::new(NO_KEY);

struct Start {
    routine: Routine,
    argument: *mut c_void,
}

extern "C" fn end(_: *mut c_void) {
    unsafe { rpmalloc_thread_finalize(1) };
}

extern "C" fn begin(start: *mut c_void) -> *mut c_void {
    unsafe {
        rpmalloc_thread_initialize();
        let Start { routine, argument } = (start as *mut Start).read();
        rpfree(start);
        pthread_setspecific(KEY.load(Ordering::Relaxed), 1 as *const c_void);
        routine(argument)
    }
}

#[no_mangle]
pub unsafe extern "C" fn pthread_create(
    thread: *mut usize, attributes: *const c_void, routine: Routine, argument: *mut c_void,
) -> c_int {
    if KEY.load(Ordering::Acquire) == NO_KEY {
        // Two threads at once make two keys; one is then not used.
        let mut key = NO_KEY;
        let failed = pthread_key_create(&mut key, end);
        if failed != 0 {
            return failed;
        }
        let _ = KEY.compare_exchange(NO_KEY, key, Ordering::AcqRel, Ordering::Acquire);
    }
    let start = malloc(core::mem::size_of::<Start>()) as *mut Start;
    if start.is_null() {
        return 11; // EAGAIN
    }
    start.write(Start { routine, argument });
    let next: Create = core::mem::transmute(dlsym(RTLD_NEXT, c"pthread_create".as_ptr()));
    let failed = next(thread, attributes, begin, start as *mut c_void);
    if failed != 0 {
        rpfree(start as *mut c_void);
    }
    failed
}
