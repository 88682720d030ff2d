/*
 * A seccomp filter that forbids one system call of those that the allocator makes: the process goes on, with
 * NULL and ENOMEM where there is no memory to be had. Each call is refused in two ways (EPERM, ENOSYS) and at two
 * times: while running, with other threads at work, and before the start of a program (this one, again).
 */
#include "check.h"
#include "child.h"
#include "family.h"
#include "load.h"
#include "scale.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 3 };

static struct forbidden {
    const char *name;
    unsigned number;
    bool at_start;   /* the dynamic linker and the C library do without it */
    bool is_memory;  /* without it requests are refused, and no thread can start */
} calls[] = {
    {"membarrier", SYS_membarrier, true, false},
    {"madvise", SYS_madvise, true, false},
    {"mremap", SYS_mremap, true, false},
    {"getrandom", SYS_getrandom, true, false},
    {"prctl", SYS_prctl, true, false},
    {"tgkill", SYS_tgkill, true, false},
    {"gettid", SYS_gettid, true, false},
    {"getpid", SYS_getpid, true, false},
    {"prlimit64", SYS_prlimit64, true, false},
    {"clock_gettime", SYS_clock_gettime, true, false},
    {"sched_yield", SYS_sched_yield, true, false},
    {"open", SYS_openat, false, false},
    {"munmap", SYS_munmap, false, false},
    {"mmap", SYS_mmap, false, true},
    {"mprotect", SYS_mprotect, false, true},
};

static const char *seccomp_program; /* argv[0] */
static int refusal = EPERM;

static void forbid(unsigned number)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ((unsigned)refusal & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    /* For all threads at once. */
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
}

static struct load loads[THREADS + 1];
static atomic_bool forbidden_now;

static void work(struct load *load, bool refusals_expected)
{
    load_run(load, scaled_work(20000), 24u << 20);
    load_check(load);
    CHECK(family.malloc_trim(0) >= 0);
    load_run(load, scaled_work(20000), 24u << 20);
    load_check(load);
    load_drain(load);
    CHECK(refusals_expected || load->refused == 0);
}

static void *worker(void *argument)
{
    struct load *load = argument;
    load_run(load, 3000, 4u << 20);
    while (!atomic_load(&forbidden_now)) {
        load_run(load, 500, 4u << 20);
    }
    load_run(load, 20000, 16u << 20);
    load_check(load);
    load_drain(load);
    return NULL;
}

static void while_running(uintptr_t which)
{
    const struct forbidden *call = &calls[which];
    pthread_t threads[THREADS + 1];
    for (size_t i = 0; i <= THREADS; i++) {
        loads[i].random = i + 1;
    }
    load_run(&loads[THREADS], 5000, 4u << 20);
    for (size_t i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, worker, &loads[i]) == 0);
    }
    forbid(call->number);
    atomic_store(&forbidden_now, true);
    work(&loads[THREADS], call->is_memory);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(call->is_memory || loads[i].refused == 0);
    }
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        work(&loads[THREADS], call->is_memory);
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    if (!call->is_memory) {
        CHECK(pthread_create(&threads[0], NULL, worker, &loads[0]) == 0);
        pthread_join(threads[0], NULL);
    }
}

static void before_start(uintptr_t which)
{
    forbid(calls[which].number);
    execl(seccomp_program, seccomp_program, "--work", (char *)NULL);
    _exit(3);
}

static void run(const char *when, void (*action)(uintptr_t value), size_t which)
{
    printf("seccomp: %s refused %s, errno %d\n", calls[which].name, when, refusal);
    fflush(stdout);
    const struct child child = child_run(action, which);
    if (child.status != 0 || child.output[0] != '\0') {
        fprintf(stderr, "seccomp: without %s %s: status 0x%x\n%s", calls[which].name, when, (unsigned)child.status,
                child.output);
    }
    CHECK(child.status == 0 && child.output[0] == '\0');
}

int main(int argc, char **argv)
{
    family_require_hakmem();
    if (argc > 1 && strcmp(argv[1], "--work") == 0) {
        atomic_store(&forbidden_now, true);
        work(&loads[0], false);
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, worker, &loads[1]) == 0);
        pthread_join(thread, NULL);
        return 0;
    }
    seccomp_program = argv[0];
    static const int refusals[] = {EPERM, ENOSYS};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        for (size_t j = 0; j < 2; j++) {
            refusal = refusals[j];
            run("while running", while_running, i);
            if (calls[i].at_start) {
                run("before the start", before_start, i);
            }
        }
    }
    printf("seccomp: ok\n");
    return 0;
}
