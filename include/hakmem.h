/*
 * hakmem: a memory allocator for Linux.
 *
 * A program needs this header only when it wants hakmem by name. Preloaded or linked, the library also
 * serves malloc, free, operator new and the rest of the family, and a program need not change at all.
 *
 * Every function here may be called from any thread at any time, before constructors and after
 * destructors included. Blocks come from one heap: what hak_malloc returned may go to free(), and the
 * other way round. On failure the allocating functions return NULL and set errno to ENOMEM, and every
 * existing block keeps its content.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef HAKMEM_H
#define HAKMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#if __cplusplus >= 201103L
#define HAK_NOTHROW noexcept
#else
#define HAK_NOTHROW throw()
#endif
#else
#define HAK_NOTHROW __attribute__((nothrow))
#endif

#define HAK_EXPORT __attribute__((visibility("default")))
#define HAK_ALLOC_SIZE(...) __attribute__((alloc_size(__VA_ARGS__)))
#define HAK_MALLOC __attribute__((malloc))
#define HAK_WARN_UNUSED __attribute__((warn_unused_result))

/* A block of at least `size` bytes, aligned to 16 when size >= 16, else to 8. Size 0 gives a block that
 * may be freed. Sizes above PTRDIFF_MAX fail. (C23 7.24.3.6) */
HAK_EXPORT void *hak_malloc(size_t size) HAK_NOTHROW HAK_MALLOC HAK_ALLOC_SIZE(1) HAK_WARN_UNUSED;

/* Gives a block back; NULL does nothing. errno is kept (POSIX.1-2024). Undefined for a pointer that is not a live block: most end the
 * process with one line on stderr (docs/using.md). (C23 7.24.3.3) */
HAK_EXPORT void hak_free(void *ptr) HAK_NOTHROW;

/* A zeroed array of `count` elements of `size` bytes; a product that overflows fails. (C23 7.24.3.2) */
HAK_EXPORT void *hak_calloc(size_t count, size_t size) HAK_NOTHROW HAK_MALLOC HAK_ALLOC_SIZE(1, 2) HAK_WARN_UNUSED;

/* Changes the size of a block, keeping min(old, new) bytes of content; it may move. hak_realloc(NULL, n)
 * is hak_malloc(n). hak_realloc(p, 0) frees p and returns NULL, as glibc's does. On failure the old
 * block is untouched. (C17 7.22.3.5; glibc manual 3.2.3.4) */
HAK_EXPORT void *hak_realloc(void *ptr, size_t size) HAK_NOTHROW HAK_ALLOC_SIZE(2) HAK_WARN_UNUSED;

/* hak_realloc(ptr, count * size) with the product checked for overflow. (POSIX.1-2024) */
HAK_EXPORT void *hak_reallocarray(void *ptr, size_t count, size_t size) HAK_NOTHROW HAK_ALLOC_SIZE(2, 3) HAK_WARN_UNUSED;

/* A block aligned to `alignment` bytes, a power of two; another alignment fails with EINVAL. The size
 * need not be a multiple of it. (C23 7.24.3.1) */
HAK_EXPORT void *hak_aligned_alloc(size_t alignment, size_t size) HAK_NOTHROW HAK_MALLOC HAK_ALLOC_SIZE(2) HAK_WARN_UNUSED;

/* As above, into *out. Returns 0, ENOMEM, or EINVAL for an alignment that is not a power of two and a
 * multiple of sizeof(void *). On failure *out is untouched. errno is kept. (POSIX.1-2024) */
HAK_EXPORT int hak_posix_memalign(void **out, size_t alignment, size_t size) HAK_NOTHROW HAK_WARN_UNUSED;

/* As hak_aligned_alloc, but an alignment that is not a power of two is rounded up to one. One above 2^63, of which there is none,
 * fails with EINVAL. (glibc) */
HAK_EXPORT void *hak_memalign(size_t alignment, size_t size) HAK_NOTHROW HAK_MALLOC HAK_ALLOC_SIZE(2) HAK_WARN_UNUSED;

/* A block aligned to the page size; hak_pvalloc also rounds the size up to whole pages. (glibc) */
HAK_EXPORT void *hak_valloc(size_t size) HAK_NOTHROW HAK_MALLOC HAK_ALLOC_SIZE(1) HAK_WARN_UNUSED;
HAK_EXPORT void *hak_pvalloc(size_t size) HAK_NOTHROW HAK_MALLOC HAK_WARN_UNUSED;

/* The bytes of the block that may be used, at least what was asked for; 0 for NULL. (glibc) */
HAK_EXPORT size_t hak_malloc_usable_size(const void *ptr) HAK_NOTHROW;

/* hak_free for a caller that knows the size, or alignment and size, it asked for. (C23 7.24.3.4, .5) */
HAK_EXPORT void hak_free_sized(void *ptr, size_t size) HAK_NOTHROW;
HAK_EXPORT void hak_free_aligned_sized(void *ptr, size_t alignment, size_t size) HAK_NOTHROW;

/* Gives unused memory back to the system. `pad` is ignored. Returns 1 if memory
 * was given back, else 0. (glibc) */
HAK_EXPORT int hak_malloc_trim(size_t pad) HAK_NOTHROW;

/* What hak_purge gives back. */
enum hak_purge_level {
    HAK_PURGE_FREE,  /* what nobody uses: free memory, freed large blocks that are kept, what ended threads have cached */
    HAK_PURGE_CACHED /* and what all threads have cached that are not inside the allocator just now, this one included; and free
                        pages among live blocks */
};

/* Gives unused memory of the whole process back to the system, now. Returns the bytes that were given back. Another level
 * gives nothing back and sets errno to EINVAL. Threads that come to the allocator while their caches are emptied wait for
 * that. */
HAK_EXPORT size_t hak_purge(enum hak_purge_level level) HAK_NOTHROW;

/* Prepares this thread to serve `count` requests of `size` bytes without asking the system. It makes slabs, which a hard limit
 * counts; their pages get memory when the blocks are first touched, a page fault each, as without it. Returns how
 * many it prepared: less than count when memory is short, 0 for more than the machine has, for sizes that have no magazine
 * (above 32 KiB; 32,760 bytes in the hardened library), and in check mode. */
HAK_EXPORT size_t hak_prewarm(size_t size, size_t count) HAK_NOTHROW;

/* Sets the limits on what the process holds in this heap: bytes of its blocks, of what it caches, and of free memory that
 * still has its pages. 0: none. The environment's HAKMEM_LIMIT or the control group's limit is replaced.
 *   soft  A request that passes it first gives back what is free; if that does not do, free pages among live blocks, and
 *         what other threads have cached that are not inside the allocator just then. Then the callback below is called,
 *         and the request is served.
 *   hard  A request that would still pass it after that fails with ENOMEM. Memory for the heap's own tables is granted.
 * What is held already stays; the next request that takes memory looks. Returns 0, or EINVAL if `hard` is below `soft`;
 * nothing is changed then. Not from signal handlers. (hakmem's own; see docs/using.md) */
HAK_EXPORT int hak_set_limit(size_t soft, size_t hard) HAK_NOTHROW;

/* Sets what is called when more than the soft limit is held, and nothing could be done: with the bytes held, the limit,
 * and `data`. NULL: nobody. It is called by a thread that requests memory, before that gets it, with no lock of the
 * allocator held: it may allocate, free, and set limits, but must not touch a block that is being resized, nor wait for
 * a lock that requesting code may hold. It must return. Compilers believe that malloc changes no variable: make those
 * that it changes atomic or volatile. Called once each time that the limit is passed from below, not
 * more often than every 100 ms, and by one thread at a time; never from within itself. Another thread may still be in
 * the one before when this returns. Not from signal handlers. (hakmem's own) */
HAK_EXPORT void hak_set_limit_callback(void (*callback)(size_t held, size_t limit, void *data), void *data) HAK_NOTHROW;

/* Sets the mode, as HAKMEM_MODE does at the start: "minimal", "fast", "balanced", "learning" or "research" (docs/learning.md). The
 * mode's values take effect within a few MiB of requests; what was learned before, or loaded, is replaced by them, but size
 * classes that were opened stay. What the environment has set besides the mode stays, and guarded samples and the trace stay
 * as they were started. Returns 0, or EINVAL for another name. Any thread; async-signal-safe. (hakmem's own) */
HAK_EXPORT int hak_mode_set(const char *name) HAK_NOTHROW;

/* Starts check mode in a running process, as HAKMEM_CHECK=1 does from the start (docs/safety.md). Blocks from before have no
 * zones around them; freeing them is verified, and they are not used again as long as others live beside them. Check mode does
 * not end. Returns 0, EALREADY, or ENOMEM. Not from signal handlers. (hakmem's own) */
HAK_EXPORT int hak_check_start(void) HAK_NOTHROW;

/* Verifies the zones of all live blocks, and of freed ones that wait in quarantine that nobody has written to them. A fault ends
 * the process with a report. Returns how many blocks were looked at: 0 if check mode is off. Other threads wait when they
 * allocate or free meanwhile. Not from signal handlers. (hakmem's own) */
HAK_EXPORT size_t hak_check(void) HAK_NOTHROW;

/* What the process holds in this heap. Bytes of small blocks are those of their size classes, in check
 * mode those requested; of large ones whole pages. */
struct hak_stats {
    /* Gauges, exact while no other thread allocates. */
    size_t small_blocks;    /* live, up to 32 KiB; in check mode of all sizes; without guarded samples */
    size_t small_bytes;
    size_t large_blocks;    /* live */
    size_t large_bytes;
    size_t cached_bytes;    /* free blocks in threads' magazines */
    size_t slab_free_bytes; /* free blocks in slabs, less holes */
    size_t hole_bytes;      /* of slabs, pages that have no memory: given back, or not used yet */
    size_t bigcache_bytes;  /* freed large blocks that are kept */
    size_t dirty_bytes;     /* other free memory that still has its pages */
    size_t metadata_bytes;  /* the heap's own tables */
    size_t held_bytes;      /* what is in memory, or was requested: counts for the soft limit */
    size_t committed_bytes; /* of the heap's address space, usable; metadata included */
    size_t reserved_bytes;  /* address space of the heap */

    /* Since the start. */
    size_t requested_bytes; /* exact, of realloc what it has added; in the hardened library a little more (docs/statistics.md) */
    size_t refills;         /* magazines that were empty */
    size_t flushes;         /* magazines that were full */
    size_t purged_bytes;    /* given back to the system */
};

/* Fills *stats, of which the caller knows `bytes` (sizeof *stats: later versions append fields; what this one does not know is
 * 0). Returns 0, EINVAL, or EAGAIN in a signal handler that has interrupted the allocator. (hakmem's own) */
HAK_EXPORT int hak_stats_get(struct hak_stats *stats, size_t bytes) HAK_NOTHROW;

/* Writes all statistics to a file as one JSON object (docs/statistics.md), as HAKMEM_STATS does; a file that is there is
 * emptied, a new one is its owner's alone (0600), and a symbolic link is refused (ELOOP): so are /dev/stdout and /dev/stderr.
 * Returns 0, EINVAL, EAGAIN as above, or an error of open(2), write(2) or close(2). (hakmem's own) */
HAK_EXPORT int hak_stats_write(const char *path) HAK_NOTHROW;

/* Starts the heap profiler, as HAKMEM_PROFILE does from the start: on average one of so many requested bytes is a sample, of which
 * the stack is kept, and when it is freed. 0: 512 KiB, which costs next to nothing; 1: each request. What was counted before is
 * forgotten. Other threads take their first sample after they have requested a few MiB more. Returns 0, EALREADY if it
 * runs, EINVAL above 1 TiB, ENOTSUP in check mode, or ENOMEM. Not from signal handlers. (hakmem's own; docs/decisions/0027) */
HAK_EXPORT int hak_profile_start(size_t bytes) HAK_NOTHROW;

/* Takes no more samples. When those that live are freed is still noticed, so that a later dump is right. Returns 0, or EALREADY
 * if none are taken. Not from signal handlers. (hakmem's own) */
HAK_EXPORT int hak_profile_stop(void) HAK_NOTHROW;

/* Writes the profile since the last start to a file, for pprof and hakmem's own tools: what is live, what was allocated, and what
 * was live at the peak, by stack. The file is readable by its owner only, appears when it is whole, and replaces another; a
 * symbolic link is refused (ELOOP), and a pipe or terminal written to as it is. Returns 0 or an errno value: EINVAL without a path,
 * ENODATA if there never was a profile, EBUSY if another thread writes one, ENOMEM, or why the file cannot be written (open, write,
 * rename). Takes memory from the system meanwhile, none from the heap. Other threads go on. Not from signal handlers. (hakmem's own) */
HAK_EXPORT int hak_profile_dump(const char *path) HAK_NOTHROW;

/* hak_malloc for a caller that says where in the program it is. `site` is any word but 0 that stands for the place and is the same
 * in each run, as HAK_SITE is; 0 stands for none. Blocks above 32 KiB that a site has freed are kept for its next requests first,
 * and while the learner is on, for as long as pays for this site. Up to 511 sites are known; others, and smaller blocks, are served
 * as by hak_malloc. What it returns may go to free and to all others. (hakmem's own; see docs/decisions/0030) */
HAK_EXPORT void *hak_alloc_at(size_t size, uintptr_t site) HAK_NOTHROW HAK_MALLOC HAK_ALLOC_SIZE(1) HAK_WARN_UNUSED;

/* hak_free_sized for a caller that also says which site will want such a block next. 0: the one that requested this one. The
 * block may come from any of C's allocating functions; `size` is what was asked for. (hakmem's own) */
HAK_EXPORT void hak_free_at(void *ptr, size_t size, uintptr_t site) HAK_NOTHROW;

/* A word for the place where it stands: a constant, made of the file's name (without directories, so that it is the same
 * wherever the program is built; of compilers without __FILE_NAME__, as gcc before 12, with them) and the line. Never 0. Of long
 * names the last 32 characters count. */
#define HAK_SITE HAK_SITE_MIX_((HAK_SITE_FILE_(0x9e3779b9u) ^ (uintptr_t)__LINE__) * HAK_SITE_PRIME_)

#if defined(__FILE_NAME__)
#define HAK_SITE_NAME_ __FILE_NAME__
#else
#define HAK_SITE_NAME_ __FILE__
#endif
#define HAK_SITE_PRIME_ ((uintptr_t)0x100000001b3u)
#define HAK_SITE_MIX_(word) (((word) ^ (word) >> 15) | 1)
/* The i-th character from the end, 0 before the first. */
#define HAK_SITE_CHARACTER_(i) \
    (uintptr_t)(unsigned char)HAK_SITE_NAME_[(i) < sizeof HAK_SITE_NAME_ ? sizeof HAK_SITE_NAME_ - 1 - (i) : sizeof HAK_SITE_NAME_ - 1]
#define HAK_SITE_1_(word, i) (((word) ^ HAK_SITE_CHARACTER_(i)) * HAK_SITE_PRIME_)
#define HAK_SITE_4_(word, i) HAK_SITE_1_(HAK_SITE_1_(HAK_SITE_1_(HAK_SITE_1_(word, i), (i) + 1), (i) + 2), (i) + 3)
#define HAK_SITE_16_(word, i) HAK_SITE_4_(HAK_SITE_4_(HAK_SITE_4_(HAK_SITE_4_(word, i), (i) + 4), (i) + 8), (i) + 12)
#define HAK_SITE_FILE_(word) HAK_SITE_16_(HAK_SITE_16_((uintptr_t)(word), 1), 17)

/* "MAJOR.MINOR.PATCH". */
HAK_EXPORT const char *hak_version(void) HAK_NOTHROW;

/* One line that says which binary this is: version, source commit, compiler, flags, build type. */
HAK_EXPORT const char *hak_build_info(void) HAK_NOTHROW;

#ifdef __cplusplus
}
#endif

#endif
