/*
 * The service thread of os.h: a thread of the kernel's that libc does not know (docs/decisions/0016).
 *
 *   os_service_start        blocks the signals, for itself and the new thread
 *     start                 claims service.number
 *       begin               makes the place, once; clears the window
 *         clone_thread
 *           [new thread] run_service  name, body
 *             leave             gives the place's pages back, and ends
 *               [kernel]        clears service.number: from then on nobody uses the place
 *
 * The place, from low addresses to high: a guard page; the stack; the window, which is what lies around the thread
 * pointer. libc's thread-local variables, ours and the program's lie at the same distance from it in every thread
 * (static TLS), below it on x86-64, above it on AArch64. What libc keeps of a thread lies on the other side.
 *
 * The sanitizers' builds have one of libc's threads instead: instrumented code needs what their runtimes keep of one.
 */
#include "os/os.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/alone.h"
#include "base/atomic.h"
#include "base/bits.h"
#include "base/kernel.h"
#include "base/thread.h"
#include "os/handler.h"

#define STARTING UINT32_MAX

static struct {
    uint32_t number; /* 0: there is no thread; else STARTING, or the kernel's number of it */
    void (*body)(void);
    const char *name;
    char *place; /* its guard page; NULL before the first start */
} service;

static void run_body(void)
{
    (void)kernel(SYS_prctl, PR_SET_NAME, (long)service.name, 0, 0, 0);
    service.body();
}

#if HAK_SANITIZED

static void *run_service(void *unused)
{
    run_body();
    store_release(&service.number, 0u);
    return unused;
}

/* ThreadSanitizer ends a process that starts a thread after a fork with threads. */
static bool is_forked;

static void forget(void)
{
    is_forked = true;
}

static bool begin(const void *local)
{
    (void)local;
    if (HAK_TSAN && is_forked)
        return false;
    int saved = errno;
    pthread_t thread;
    bool begun = pthread_create(&thread, NULL, run_service, NULL) == 0;
    if (begun)
        (void)pthread_detach(thread);
    errno = saved;
    return begun;
}

#else

static void forget(void)
{
}

enum {
    STACK = 32 * 1024,
    WINDOW = 64 * 1024, /* a multiple of every page size */
    /* Of the window, for what libc keeps of a thread (glibc: 2.3 KiB). Less than a page of 4 KiB, so that it and the
     * variables nearest to the thread pointer take one. */
    LIBC = 3 * 1024,
    CLONE_FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
                  CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID,
};

static size_t usable_bytes(void)
{
    return align_up(STACK + WINDOW, os_page_size());
}

static _Noreturn void leave(void *place, size_t bytes);

/* Nothing returns from here. */
static _Noreturn void run_service(void)
{
    run_body();
    leave(service.place + os_page_size(), usable_bytes());
}

#if defined(__x86_64__)

enum { THREAD_POINTER = WINDOW - LIBC }; /* bytes into the window */

/* The words there that code reads: the thread pointer itself, twice (thread_self is word 0; pthread_self is word 2 of glibc's
 * threads), and the stack protector's. */
static void fill_head(uintptr_t *head)
{
    head[0] = head[2] = (uintptr_t)head;
    head[5] = ((const uintptr_t *)thread_self())[5];
}

/* The new thread begins in run_service() with an empty stack and the return address 0, where backtraces end. */
static long clone_thread(char *stack, char *pointer)
{
    long result = SYS_clone;
    register uint32_t *cleared __asm__("r10") = &service.number;
    register char *tls __asm__("r8") = pointer;
    register void (*entry)(void) __asm__("r9") = run_service;
    __asm__ volatile("syscall\n\t"
                     "testq %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xorl %%ebp, %%ebp\n\t"
                     "pushq $0\n\t"
                     "jmp *%%r9\n"
                     "1:"
                     : "+a"(result)
                     : "D"((long)CLONE_FLAGS), "S"(stack), "d"(&service.number), "r"(cleared), "r"(tls), "r"(entry)
                     : "rcx", "r11", "cc", "memory");
    return result;
}

/* Its own stack is among what is given back: no memory of its own is touched after that. Where a sandbox forbids the end, it waits for
 * ever: for its number to change. */
static _Noreturn void leave(void *place, size_t bytes)
{
    __asm__ volatile("syscall\n\t"
                     "movl %[exit], %%eax\n\t"
                     "xorl %%edi, %%edi\n\t"
                     "syscall\n"
                     "1:\t"
                     "movl %[futex], %%eax\n\t"
                     "movq %%rbx, %%rdi\n\t"
                     "movl %[wait], %%esi\n\t"
                     "movl (%%rbx), %%edx\n\t"
                     "xorl %%r10d, %%r10d\n\t"
                     "syscall\n\t"
                     "jmp 1b"
                     :
                     : "a"((long)SYS_madvise), "D"(place), "S"(bytes), "d"((long)MADV_DONTNEED), "b"(&service.number),
                       [exit] "i"(SYS_exit), [futex] "i"(SYS_futex), [wait] "i"(FUTEX_WAIT_PRIVATE)
                     : "rcx", "r10", "r11", "memory");
    __builtin_unreachable();
}

#elif defined(__aarch64__)

enum { THREAD_POINTER = LIBC }; /* bytes into the window */

/* Nothing is read there: pthread_self is computed from the thread pointer, the stack protector's word is global. */
static void fill_head(uintptr_t *head)
{
    (void)head;
}

/* The new thread begins in run_service() with an empty stack and the return address 0, where backtraces end. */
static long clone_thread(char *stack, char *pointer)
{
    register long result __asm__("x0") = CLONE_FLAGS;
    register char *top __asm__("x1") = stack;
    register uint32_t *set __asm__("x2") = &service.number;
    register char *tls __asm__("x3") = pointer;
    register uint32_t *cleared __asm__("x4") = &service.number;
    register long number __asm__("x8") = SYS_clone;
    register void (*entry)(void) __asm__("x16") = run_service;
    __asm__ volatile("svc #0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, xzr\n\t"
                     "mov x30, xzr\n\t"
                     "br x16\n"
                     "1:"
                     : "+r"(result)
                     : "r"(top), "r"(set), "r"(tls), "r"(cleared), "r"(number), "r"(entry)
                     : "cc", "memory");
    return result;
}

/* Its own stack is among what is given back: no memory of its own is touched after that. Where a sandbox forbids the end, it waits for
 * ever: for its number to change. */
static _Noreturn void leave(void *place, size_t bytes)
{
    register void *from __asm__("x0") = place;
    register size_t length __asm__("x1") = bytes;
    register long advice __asm__("x2") = MADV_DONTNEED;
    register uint32_t *word __asm__("x9") = &service.number;
    register long number __asm__("x8") = SYS_madvise;
    __asm__ volatile("svc #0\n\t"
                     "mov x8, %[exit]\n\t"
                     "mov x0, xzr\n\t"
                     "svc #0\n"
                     "1:\t"
                     "mov x8, %[futex]\n\t"
                     "mov x0, x9\n\t"
                     "mov x1, %[wait]\n\t"
                     "ldr w2, [x9]\n\t"
                     "mov x3, xzr\n\t"
                     "svc #0\n\t"
                     "b 1b"
                     :
                     : "r"(from), "r"(length), "r"(advice), "r"(word), "r"(number), [exit] "i"(SYS_exit), [futex] "i"(SYS_futex),
                       [wait] "i"(FUTEX_WAIT_PRIVATE)
                     : "x3", "memory");
    __builtin_unreachable();
}

#endif

/* Does a thread-local word of the caller's lie in the window, in the new thread? */
static bool is_reached(const void *local)
{
    uintptr_t offset = (uintptr_t)local - thread_self() + THREAD_POINTER;
    return offset <= WINDOW - sizeof(uintptr_t);
}

static bool make_place(void)
{
    if (service.place != NULL)
        return true;
    size_t guard = os_page_size();
    size_t bytes = guard + usable_bytes();
    char *place = os_reserve(NULL, bytes);
    if (place == NULL)
        return false;
    if (!os_commit(place + guard, bytes - guard)) {
        os_release(place, bytes);
        return false;
    }
    service.place = place;
    return true;
}

static bool begin(const void *local)
{
    if (!is_reached(&errno) || !is_reached(local) || !make_place())
        return false;
    char *window = service.place + os_page_size() + usable_bytes() - WINDOW;
    if (!os_purge(window, WINDOW)) /* locked memory */
        memset(window, 0, WINDOW);
    char *pointer = window + THREAD_POINTER;
    fill_head((uintptr_t *)(void *)pointer);
    return !is_error(clone_thread(window, pointer));
}

#endif

/* Of those who try at once, one is told true. */
static bool claim(void)
{
    uint32_t none = 0;
    return __atomic_compare_exchange_n(&service.number, &none, STARTING, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static bool start(void (*body)(void), const char *name, const void *local)
{
    if (!claim())
        return false;
    service.body = body;
    service.name = name;
    bool was_alone = !load_relaxed(&alone_no_more);
    store_relaxed(&alone_no_more, true);
    bool begun = begin(local);
    if (!begun) {
        store_relaxed(&alone_no_more, !was_alone);
        store_release(&service.number, 0u);
    }
    return begun;
}

/* The thread is born with the caller's signals. Nor may a handler fork between claim and clone: its child might start
 * one, and then come back here. */
bool os_service_start(void (*body)(void), const char *name, const void *local)
{
    if (os_service_runs())
        return false;
    struct os_signals before = os_block_signals();
    bool begun = before.blocked && start(body, name, local);
    os_unblock_signals(before);
    return begun;
}

bool os_service_runs(void)
{
    return load_acquire(&service.number) != 0;
}

void os_service_forget(void)
{
    forget();
    store_relaxed(&service.number, 0u);
    store_relaxed(&alone_no_more, false);
}
