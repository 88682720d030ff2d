#include "cases.h"

#include "check.h"
#include "family.h"
#include "workload.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
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

/* Refuses one system call with an error. */
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

static void refused(uintptr_t number)
{
    workload_hold();
    refuse((long)number, ENOSYS);
    workload_run();
    workload_check_held();
    hostile_become_workload();
}

static void forbidden(uintptr_t number)
{
    workload_hold();
    refuse((long)number, EPERM);
    workload_run();
    workload_check_held();
    hostile_become_workload();
}

/* A sandbox: a call that is not on its list is refused with EPERM, as in a container, or ends the process, as in sshd's and chronyd's.
 * In docs/using.md stands what is to be on it. */
static void shut_in(uintptr_t otherwise)
{
    static const unsigned listed[] = {SYS_exit_group, SYS_mmap, SYS_munmap, SYS_mremap, SYS_mprotect, SYS_madvise, SYS_futex,
                                      SYS_mincore, SYS_prlimit64, SYS_getpid, SYS_gettid, SYS_getrandom, SYS_rt_sigaction};
    enum { LISTED = sizeof listed / sizeof listed[0], MEMORY = 7 };
    const int allowed = otherwise == SECCOMP_RET_KILL_PROCESS ? LISTED : MEMORY;
    struct sock_filter program[2 + LISTED * 2] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (int i = 0; i < allowed; i++) {
        program[1 + i * 2] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, listed[i], 0, 1);
        program[2 + i * 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    program[1 + allowed * 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, (unsigned)otherwise);
    workload_hold();
    filter_calls(program, (unsigned short)(2 + allowed * 2));
    workload_run_alone();
    workload_check_held();
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
    {"munmap forbidden", forbidden, SYS_munmap},
    {"mmap gives nothing more", no_more_memory, SYS_mmap},
    {"mprotect gives nothing more", no_more_memory, SYS_mprotect},
    {"mremap gives nothing more", no_more_memory, SYS_mremap},
    {"shut in, or refused", shut_in, SECCOMP_RET_ERRNO | EPERM},
    {"shut in, or killed", shut_in, SECCOMP_RET_KILL_PROCESS},
    {"no /proc", without_proc, 0},
    {"fixed addresses", with_personality, ADDR_NO_RANDOMIZE},
    {"legacy layout", with_personality, ADDR_COMPAT_LAYOUT},
    {"readable is executable", with_personality, READ_IMPLIES_EXEC},
    {"unlimited stack", unlimited_stack, 0},
    {"foreign mappings in the way", foreign_mappings, 0},
};
const size_t kernel_case_count = sizeof kernel_cases / sizeof kernel_cases[0];
