//! rpmalloc.

use rpmalloc_sys::{rpaligned_alloc, rpcalloc, rpfree, rpmalloc, rpmalloc_usable_size, rprealloc};

export::export!(rpmalloc, rpfree, rpcalloc, rprealloc, rpmalloc_usable_size, rpaligned_alloc);
