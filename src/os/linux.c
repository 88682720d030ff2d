/* The contract of os.h on Linux 5.4 and later, but for the service thread (service_thread.c). */
#include "os/os.h"

#include <limits.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <ucontext.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/kernel.h"

#if !defined(MAP_FIXED_NOREPLACE)
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#if !defined(MADV_COLLAPSE)
#define MADV_COLLAPSE 25
#endif

/* Of the kernel's interface, whose headers are not everywhere (linux/membarrier.h). */
enum {
    MEMBARRIER_CMD_PRIVATE_EXPEDITED = 1 << 3,
    MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED = 1 << 4,
};

/* Of FUTEX_WAKE_OP: set the bit with this number; nobody waits. */
#define FUTEX_SET_BIT(bit) ((2u | 8u) << 28 | (bit) << 12)

enum {
    PRIVATE_MEMORY = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
    READ_WRITE = PROT_READ | PROT_WRITE,
};

/* The one nobody waits for, the other who sleeps. They are two: FUTEX_WAKE_OP wakes one waiter, though it is asked to wake none. */
static uint32_t idle_futex;
static uint32_t sleep_futex;

uint64_t os_calls[OS_CALLS];

static long counted(enum os_call call, long number, long a, long b, long c, long d, long e)
{
    add_relaxed(&os_calls[call], 1u);
    return kernel(number, a, b, c, d, e);
}

/* By a rule of a sandbox, and not because of what was asked. */
static bool is_forbidden(long result)
{
    return result == -EPERM || result == -EACCES || result == -ENOSYS;
}

static long map_as(void *at, size_t bytes, int protection, int flags)
{
    return counted(OS_MMAP, SYS_mmap, (long)at, (long)bytes, protection, flags, -1);
}

/* There are sandboxes that know of few flags (OpenSSH's: EINVAL). Without these two the kernel takes the place as a wish. */
static COLD void *map_plainly(long refused, void *at, size_t bytes, int protection, int flags)
{
    const int wishes = MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    if (refused != -EINVAL && !is_forbidden(refused))
        return NULL;
    long result = map_as(at, bytes, protection, flags & ~wishes);
    return is_error(result) ? NULL : (void *)result;
}

static void *map(void *at, size_t bytes, int protection, int flags)
{
    long result = map_as(at, bytes, protection, flags);
    return UNLIKELY(is_error(result)) ? map_plainly(result, at, bytes, protection, flags) : (void *)result;
}

static void advise(void *at, size_t bytes, int advice)
{
    (void)counted(OS_MADVISE, SYS_madvise, (long)at, (long)bytes, advice, 0, 0);
}

/* Huge pages are chosen for a superslab by its use, never handed out by the kernel's own guess: a first
 * touch would take 2 MiB, and khugepaged would refill what was purged. */
void os_forbid_huge_pages(void *at, size_t bytes)
{
    advise(at, bytes, MADV_NOHUGEPAGE);
}

void os_allow_huge_pages(void *at, size_t bytes)
{
    advise(at, bytes, MADV_HUGEPAGE);
}

size_t os_page_size(void)
{
    static size_t cached;
    size_t size = load_relaxed(&cached);
    if (size == 0) {
        size = getauxval(AT_PAGESZ);
        store_relaxed(&cached, size);
    }
    return size;
}

size_t os_huge_page_size(void)
{
    /* What one table of pages maps, each entry being a word. */
    return os_page_size() / sizeof(uint64_t) * os_page_size();
}

enum os_collapse os_collapse(void *at)
{
    os_allow_huge_pages(at, os_huge_page_size());
    long result = counted(OS_MADVISE, SYS_madvise, (long)at, (long)os_huge_page_size(), MADV_COLLAPSE, 0, 0);
    if (!is_error(result))
        return OS_COLLAPSED;
    /* Invalid is an advice that the kernel does not know, and a range that is several mappings. Of no range at all, only the one. */
    bool is_known = !is_error(counted(OS_MADVISE, SYS_madvise, (long)at, 0, MADV_COLLAPSE, 0, 0));
    return is_known ? OS_NOT_NOW : OS_NEVER;
}

void *os_reserve(void *hint, size_t bytes)
{
    void *at = map(hint, bytes, PROT_NONE, PRIVATE_MEMORY | (hint != NULL ? MAP_FIXED_NOREPLACE : 0));
    if (at != NULL && hint != NULL && at != hint) {
        /* A kernel that does not know MAP_FIXED_NOREPLACE takes the address as a mere wish. */
        os_release(at, bytes);
        return NULL;
    }
    if (at != NULL)
        os_forbid_huge_pages(at, bytes);
    return at;
}

static long commit(char *at, size_t bytes)
{
    return counted(OS_MPROTECT, SYS_mprotect, (long)at, (long)bytes, READ_WRITE, 0, 0);
}

/* There are sandboxes that allow only so much at a time (Tor's: 20 MiB). */
static COLD bool commit_in_pieces(long refused, char *at, size_t bytes)
{
    const size_t most = 16 * MIB;
    long result = is_forbidden(refused) ? 0 : refused;
    for (size_t done = 0; done < bytes && !is_error(result); done += most)
        result = commit(at + done, min_size(most, bytes - done));
    return !is_error(result);
}

bool os_commit(void *at, size_t bytes)
{
    long result = commit(at, bytes);
    return LIKELY(!is_error(result)) || commit_in_pieces(result, at, bytes);
}

bool os_is_beyond(size_t bytes)
{
    struct sysinfo machine;
    if (is_error(kernel(SYS_sysinfo, (long)&machine, 0, 0, 0, 0)))
        return false;
    if (machine.mem_unit == 0 || bytes / machine.mem_unit <= machine.totalram + machine.totalswap)
        return false;
    void *promised = map(NULL, bytes, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    if (promised == NULL)
        return true;
    os_release(promised, bytes);
    return false;
}

enum purge { PURGE_UNKNOWN, PURGE_DONE, PURGE_FEIGNED };

static bool purge(void *at, size_t bytes)
{
    return !is_error(counted(OS_MADVISE, SYS_madvise, (long)at, (long)bytes, MADV_DONTNEED, 0, 0));
}

/* Emulators have taken it for mere advice and answered as if they had followed it (qemu-user before 7.1). A page of our own tells.
 * Two threads that try at once may get the same page one after the other, which ThreadSanitizer would not know to be another. */
static COLD UNSANITIZED enum purge try_purge(void)
{
    size_t page = os_page_size();
    volatile char *at = map(NULL, page, READ_WRITE, PRIVATE_MEMORY);
    if (at == NULL)
        return PURGE_UNKNOWN;
    *at = 1;
    /* Who refuses it, as for locked memory, knows what it is. */
    bool does = !purge((void *)at, page) || *at == 0;
    os_release((void *)at, page);
    return does ? PURGE_DONE : PURGE_FEIGNED;
}

bool os_purge(void *at, size_t bytes)
{
    static enum purge known;
    if (!purge(at, bytes))
        return false;
    if (UNLIKELY(load_relaxed(&known) == PURGE_UNKNOWN))
        store_relaxed(&known, try_purge());
    return load_relaxed(&known) == PURGE_DONE;
}

bool os_forbid(void *at, size_t bytes)
{
    return !is_error(counted(OS_MPROTECT, SYS_mprotect, (long)at, (long)bytes, PROT_NONE, 0, 0));
}

/* Locked memory keeps its pages: then at least its content goes, while it may be written. Else what another thread has written in
 * between goes, too. */
bool os_close(void *at, size_t bytes)
{
    if (!os_purge(at, bytes))
        os_clear(at, bytes);
    if (!os_forbid(at, bytes))
        return false;
    (void)os_purge(at, bytes);
    return true;
}

bool os_renew(void *at, size_t bytes)
{
    if (map(at, bytes, READ_WRITE, PRIVATE_MEMORY | MAP_FIXED) == NULL)
        return false;
    os_forbid_huge_pages(at, bytes);
    return true;
}

bool os_refill_hole(void *at, size_t bytes)
{
    void *got = map(at, bytes, READ_WRITE, PRIVATE_MEMORY | MAP_FIXED_NOREPLACE);
    if (got == at) {
        os_forbid_huge_pages(at, bytes);
        return true;
    }
    if (got != NULL)
        os_release(got, bytes);
    return false;
}

/* So many bytes from there on nobody can have, since the first thread's stack is among them; or a page more than `bytes`. */
static size_t too_many(const void *from, size_t bytes)
{
    size_t page = os_page_size();
    uintptr_t stack = align_down(getauxval(AT_RANDOM), page);
    return stack > (uintptr_t)from + bytes ? stack + page - (uintptr_t)from : bytes + page;
}

bool os_can_move(void *from, size_t bytes)
{
    /* To grow in place is refused, to one mapping with ENOMEM, because something follows, and to a part of several with EFAULT. Were it
     * granted, as by a page it can be, the hole that another thread's move has just left would be taken. */
    size_t most = too_many(from, bytes);
    long result = counted(OS_MREMAP, SYS_mremap, (long)from, (long)bytes, (long)most, 0, 0);
    if (!is_error(result))
        os_release((char *)from + bytes, most - bytes);
    /* What a sandbox forbids here, it may forbid there. */
    return result != -EFAULT && !is_forbidden(result);
}

bool os_move(void *from, size_t old_bytes, void *to, size_t new_bytes)
{
    return !is_error(counted(OS_MREMAP, SYS_mremap, (long)from, (long)old_bytes, (long)new_bytes,
                            MREMAP_MAYMOVE | MREMAP_FIXED, (long)to));
}

/* 0: the word has the value; -EAGAIN: it has another; else it is not to be read. Waiters are moved only if the futex has the value:
 * here none are, and there are none. Before it looks, the kernel announces itself to those who change the other futex
 * (futex_hb_waiters_inc), with a full barrier. */
static long compare_word(uintptr_t at, uint32_t value)
{
    return kernel6(SYS_futex, (long)at, FUTEX_CMP_REQUEUE_PRIVATE, 0, 0, (long)&idle_futex, (long)value);
}

bool os_holds(const void *at, uint32_t value)
{
    return compare_word((uintptr_t)at, value) == 0;
}

bool os_is_readable(uintptr_t at)
{
    long result = compare_word(at, 0);
    return result == 0 || result == -EAGAIN;
}

#if HAK_TSAN /* which does not see what the kernel writes */
static bool set_bit(uint32_t *at, unsigned bit)
{
    __atomic_fetch_or(at, 1u << bit, __ATOMIC_ACQ_REL);
    return true;
}
#else
static bool set_bit(uint32_t *at, unsigned bit)
{
    return kernel6(SYS_futex, (long)&idle_futex, FUTEX_WAKE_OP_PRIVATE, 0, 0, (long)at, FUTEX_SET_BIT(bit)) == 0;
}
#endif

bool os_set_bit(uintptr_t *at, uint32_t low, unsigned bit)
{
    uint32_t *half = (uint32_t *)(void *)at + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    return os_holds(half, low) && set_bit(half, bit);
}

void os_release(void *at, size_t bytes)
{
    (void)counted(OS_MUNMAP, SYS_munmap, (long)at, (long)bytes, 0, 0, 0);
}

static long membarrier(int command)
{
    return counted(OS_MEMBARRIER, SYS_membarrier, command, 0, 0, 0, 0);
}

static bool registered; /* for os_barrier */

void os_prepare_barrier(void)
{
    if (!load_relaxed(&registered))
        store_relaxed(&registered, !is_error(membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)));
}

bool os_barrier(void)
{
    os_prepare_barrier();
    if (!load_relaxed(&registered))
        return false;
    long result = membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    if (result == -EPERM) { /* as in gVisor's forks, though their parents were registered */
        store_relaxed(&registered, false);
        os_prepare_barrier();
        result = membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    }
    return !is_error(result);
}

/* No entropy, or a seccomp filter: what differs between runs is where the kernel put us, and what it gave the program's start. Each is
 * another number, from which the others do not follow without that: the finalizer of splitmix64 (Steele, Lea and Flood, 2014). */
static COLD uint64_t random_by_itself(void)
{
    static uint64_t steps;
    const uint64_t golden = 0x9e3779b97f4a7c15u;
    const void *at = (const void *)getauxval(AT_RANDOM); /* not aligned */
    uint64_t given[2] = {0};
    uint64_t value = (uintptr_t)&value + (add_relaxed(&steps, golden) + golden);
    if (at != NULL)
        memcpy(given, at, sizeof given);
    value += given[0] ^ rotate_right(given[1], 32);
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

uint64_t os_random(void)
{
    uint64_t value = 0;
    bool given = kernel(SYS_getrandom, (long)&value, sizeof value, GRND_NONBLOCK, 0, 0) == (long)sizeof value;
    return given ? value : random_by_itself();
}

bool os_is_secure(void)
{
    return getauxval(AT_SECURE) != 0;
}

size_t os_address_limit(void)
{
    struct rlimit limit = {0};
    if (is_error(kernel(SYS_prlimit64, 0, RLIMIT_AS, 0, (long)&limit, 0)) || limit.rlim_cur > SIZE_MAX)
        return SIZE_MAX;
    return (size_t)limit.rlim_cur;
}

FRAGILE uintptr_t os_interrupted_at(const void *context)
{
    const ucontext_t *interrupted = context;
#if defined(__x86_64__)
    return (uintptr_t)interrupted->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)interrupted->uc_mcontext.pc;
#endif
}

static uint64_t ns_of(const struct timeval *time)
{
    return (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_usec * 1000;
}

struct os_usage os_usage(void)
{
    struct rusage used = {0};
    (void)kernel(SYS_getrusage, RUSAGE_SELF, (long)&used, 0, 0, 0);
    return (struct os_usage){ns_of(&used.ru_utime) + ns_of(&used.ru_stime), (uint64_t)used.ru_minflt, (uint64_t)used.ru_majflt};
}

int os_thread_id(void)
{
    return (int)kernel(SYS_gettid, 0, 0, 0, 0, 0);
}

struct os_thread os_thread(void)
{
    return (struct os_thread){os_thread_id(), (int)kernel(SYS_getpid, 0, 0, 0, 0, 0)};
}

bool os_thread_is_gone(struct os_thread thread)
{
    return thread.process == kernel(SYS_getpid, 0, 0, 0, 0, 0)
           && kernel(SYS_tgkill, thread.process, thread.number, 0, 0, 0) == -ESRCH;
}

/* By the call that locks need anyway: a sandbox that knows of malloc allows it. */
void os_sleep(uint32_t ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)kernel6(SYS_futex, (long)&sleep_futex, FUTEX_WAIT_PRIVATE, 0, (long)&time, 0, 0);
}
