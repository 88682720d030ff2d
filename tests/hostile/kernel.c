#include "cases.h"

#include "check.h"
#include "family.h"
#include "workload.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From now on, also in programs that this one becomes. */
static void filter_calls(struct sock_filter *program, unsigned short length)
{
    struct sock_fprog filter = {length, program};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0);
}

/* Refuses one system call with an error; or, with none, only says that it was done. */
static void refuse(long number, int error)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    filter_calls(program, sizeof program / sizeof program[0]);
}

/* After a refusal: what is held stays, and more work is done, here and in a new program. */
static void go_on(void)
{
    workload_run();
    workload_check_held();
    hostile_become_workload();
}

static void refused(uintptr_t number)
{
    workload_hold();
    refuse((long)number, ENOSYS);
    go_on();
}

static void forbidden(uintptr_t number)
{
    workload_hold();
    refuse((long)number, EPERM);
    go_on();
}

/* As emulators have done. */
static void feigned(uintptr_t number)
{
    workload_hold();
    refuse((long)number, 0);
    go_on();
}

/* Refuses it where this is so of the low half of an argument. */
static void refuse_where(long number, unsigned argument, unsigned short test, unsigned value, int error)
{
    const unsigned at = (unsigned)offsetof(struct seccomp_data, args[0]) + argument * 8 + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) * 4;
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
        BPF_JUMP(BPF_JMP | test | BPF_K, value, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    filter_calls(program, sizeof program / sizeof program[0]);
}

/* As in OpenSSH's sandbox. */
static void few_flags(uintptr_t flags)
{
    workload_hold();
    refuse_where(SYS_mmap, 3, BPF_JSET, (unsigned)flags, EINVAL);
    go_on();
}

/* As in Tor's sandbox. */
static void short_stretches(uintptr_t most)
{
    workload_hold();
    refuse_where(SYS_mprotect, 1, BPF_JGT, (unsigned)most, EPERM);
    void *block = family.malloc(5 * most);
    CHECK(block != NULL);
    memset(block, 1, 5 * most);
    workload_run();
    family.free(block);
    workload_check_held();
    hostile_become_workload();
}

/* What docs/using.md says that a sandbox must allow, and what libc needs for threads and forks, and to end. */
static const unsigned calls[] = {
    SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_futex, SYS_exit_group,
    SYS_prlimit64, SYS_mincore, SYS_getrandom, SYS_getpid, SYS_gettid, SYS_rt_sigaction, SYS_openat, SYS_read, SYS_close,
    SYS_getdents64, SYS_sched_getaffinity, SYS_membarrier, SYS_tgkill, SYS_clone, SYS_rt_sigprocmask, SYS_prctl, SYS_exit,
    SYS_clone3, SYS_clock_gettime, SYS_set_robust_list, SYS_rseq, SYS_wait4,
};

enum { ALL_CALLS = sizeof calls / sizeof calls[0], MEMORY_CALLS = 7 };

struct sandbox {
    unsigned allowed;   /* of the calls, the first */
    unsigned otherwise; /* what becomes of other calls */
    void (*work)(void);
};

static const struct sandbox sandboxes[] = {
    {MEMORY_CALLS, SECCOMP_RET_ERRNO | EPERM, workload_run_alone},
    {ALL_CALLS, SECCOMP_RET_KILL_PROCESS, workload_run},
};

/* To the end of the process, with its destructors. */
static void shut_in(uintptr_t which)
{
    const struct sandbox *box = &sandboxes[which];
    struct sock_filter program[2 + ALL_CALLS * 2] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (unsigned i = 0; i < box->allowed; i++) {
        program[1 + i * 2] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
        program[2 + i * 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    program[1 + box->allowed * 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, box->otherwise);
    workload_hold();
    filter_calls(program, (unsigned short)(2 + box->allowed * 2));
    box->work();
    workload_check_held();
    exit(0);
}

/* No more memory from the kernel at all: what there is goes on working. Every kind of call that could bring some. */
static void no_more_memory(uintptr_t number)
{
    workload_hold();
    refuse((long)number, ENOMEM);
    (void)workload_try();
    workload_check_held();
    (void)workload_try();
}

static void without_proc(uintptr_t unused)
{
    (void)unused;
    CHECK(unshare(CLONE_NEWNS) == 0);
    CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    CHECK(umount2("/proc", MNT_DETACH) == 0);
    CHECK(access("/proc/self", F_OK) != 0);
    hostile_become_workload();
}

static void with_personality(uintptr_t flags)
{
    CHECK(personality((unsigned long)flags) != -1);
    hostile_become_workload();
}

/* The legacy layout: mappings grow upwards from a third of the address space. */
static void unlimited_stack(uintptr_t unused)
{
    (void)unused;
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_STACK, &limit) == 0);
    hostile_become_workload();
}

/* Other mappings wherever the heap may want to grow next. */
static void foreign_mappings(uintptr_t unused)
{
    (void)unused;
    enum { ROUNDS = 60 };
    const size_t bytes = (size_t)64 << 20;
    static void *blocks[ROUNDS];
    workload_hold();
    for (int i = 0; i < ROUNDS; i++) {
        blocks[i] = family.malloc(bytes);
        CHECK(blocks[i] != NULL);
        memset(blocks[i], i, 100);
        char *end = (char *)blocks[i] + bytes;
        for (size_t step = (size_t)1 << 16; step <= (size_t)1 << 30; step *= 2)
            (void)mmap(end + step, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    }
    workload_run();
    for (int i = 0; i < ROUNDS; i++) {
        CHECK(*(unsigned char *)blocks[i] == i);
        family.free(blocks[i]);
    }
    workload_check_held();
}

const struct hostile_case kernel_cases[] = {
    {"no membarrier", refused, SYS_membarrier},
    {"no madvise", refused, SYS_madvise},
    {"no mremap", refused, SYS_mremap},
    {"no getrandom", refused, SYS_getrandom},
    {"no prlimit64", refused, SYS_prlimit64},
    {"no tgkill", refused, SYS_tgkill},
    {"no gettid", refused, SYS_gettid},
    {"membarrier forbidden", forbidden, SYS_membarrier},
    {"madvise forbidden", forbidden, SYS_madvise},
    {"mremap forbidden", forbidden, SYS_mremap},
    {"madvise feigned", feigned, SYS_madvise},
    {"munmap forbidden", forbidden, SYS_munmap},
    {"mmap gives nothing more", no_more_memory, SYS_mmap},
    {"mprotect gives nothing more", no_more_memory, SYS_mprotect},
    {"mremap gives nothing more", no_more_memory, SYS_mremap},
    {"shut in, or refused", shut_in, 0},
    {"shut in, or killed", shut_in, 1},
    {"mmap knows few flags", few_flags, MAP_NORESERVE | MAP_FIXED_NOREPLACE},
    {"mprotect of little at a time", short_stretches, (size_t)20 << 20},
    {"no /proc", without_proc, 0},
    {"fixed addresses", with_personality, ADDR_NO_RANDOMIZE},
    {"legacy layout", with_personality, ADDR_COMPAT_LAYOUT},
    {"readable is executable", with_personality, READ_IMPLIES_EXEC},
    {"unlimited stack", unlimited_stack, 0},
    {"foreign mappings in the way", foreign_mappings, 0},
};
const size_t kernel_case_count = sizeof kernel_cases / sizeof kernel_cases[0];
