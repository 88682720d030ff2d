/* observe/unwind.h: every call on the way is found, whatever the functions in between look like. */
#include "unit.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "observe/unwind.h"
#include "process.h"

enum { MOST = 128, DEPTH = 30 };

size_t __real_os_read(uintptr_t from, void *to, size_t bytes);
size_t __wrap_os_read(uintptr_t from, void *to, size_t bytes);

/* The emulator has no process_vm_readv: what is mapped can be written to a pipe. */
static size_t read_through_pipe(uintptr_t from, void *to, size_t bytes)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t to_page_end = page - from % page;
    ssize_t written = write(ends[1], (const void *)from, bytes);
    if (written < 0 && to_page_end < bytes)
        written = write(ends[1], (const void *)from, to_page_end);
    size_t got = written > 0 ? (size_t)written : 0;
    CHECK(got == 0 || read(ends[0], to, got) == written);
    close(ends[0]);
    close(ends[1]);
    return got;
}

size_t __wrap_os_read(uintptr_t from, void *to, size_t bytes)
{
    return process_is_emulated() ? read_through_pipe(from, to, bytes) : __real_os_read(from, to, bytes);
}

/* Return addresses of the test's own functions, the outermost first: a part of each stack. */
static _Thread_local uintptr_t expected[MOST];
static _Thread_local unsigned expected_count;

static void expect(const void *return_address)
{
    expected[expected_count++] = (uintptr_t)__builtin_extract_return_addr((void *)(uintptr_t)return_address);
}

#define EXPECT_CALLER() expect(__builtin_return_address(0))

/* All of them are there, in this order; others may be in between. */
static void check_calls(const uintptr_t *calls, size_t count)
{
    unsigned left = expected_count;
    CHECK(count < MOST);
    for (size_t i = 0; i < count && left > 0; i++)
        if (calls[i] == expected[left - 1])
            left--;
    CHECK(left == 0);
}

/* Of the stacks before, whatever they were. */
static _Thread_local struct unwind_memo memo;

/* What is known of the stack before finds the same. */
static void check_again(const struct os_frame *from, const uintptr_t *calls, size_t count, size_t most)
{
    uintptr_t again[MOST];
    size_t wanted = count < most ? count : most;
    CHECK(unwind_again(from, &memo, again, most) == wanted);
    CHECK(memcmp(again, calls, wanted * sizeof *calls) == 0);
}

/* A frame that says itself where its caller is leads to the same calls as the rules of the function that it is of. */
ALWAYS_INLINE void check_linked(const uintptr_t *calls, size_t count)
{
    uintptr_t linked[MOST];
    struct os_frame here = os_frame_linked();
    CHECK(unwind(&here, UNWIND_SOUND, linked, MOST) == count && linked[0] == here.pc);
    CHECK(memcmp(linked + 1, calls + 1, (count - 1) * sizeof *calls) == 0);
    check_again(&here, linked, count, UNWIND_MEMO);
}

static NOINLINE size_t check_stack(void)
{
    EXPECT_CALLER();
    uintptr_t calls[MOST];
    struct os_frame here = os_frame_here();
    uintptr_t copied[MOST];
    size_t count_copied = unwind(&here, UNWIND_BROKEN, copied, MOST);
    check_calls(copied, count_copied);
    /* In code without call frame information, as a libc may be in which the stack begins, one more is guessed where the kernel
     * can be asked whether there is memory. */
    size_t count = unwind(&here, UNWIND_SOUND, calls, MOST);
    CHECK(count <= count_copied && memcmp(calls, copied, count * sizeof *calls) == 0);
    check_calls(calls, count);
    check_again(&here, calls, count, UNWIND_MEMO);
    check_again(&here, calls, count, count < UNWIND_MEMO ? count : UNWIND_MEMO);
    check_again(&here, calls, count, 1 + count % 7);
    check_linked(calls, count);
    expected_count--;
    return count;
}

static NOINLINE size_t recurse(unsigned depth)
{
    EXPECT_CALLER();
    size_t count = depth > 0 ? recurse(depth - 1) : check_stack();
    expected_count--;
    return count;
}

static NOINLINE size_t with_realigned_stack(unsigned depth)
{
    EXPECT_CALLER();
    char variable[64 * (depth + 1)];
    char ALIGNED(128) aligned[128];
    memset(variable, 1, sizeof variable);
    memset(aligned, 2, sizeof aligned);
    __asm__ volatile("" ::"r"(variable), "r"(aligned) : "memory");
    CHECK((uintptr_t)aligned % 128 == 0);
    size_t count = depth > 0 ? with_realigned_stack(depth - 1) : check_stack();
    expected_count--;
    return count;
}

__attribute__((optimize("no-omit-frame-pointer"))) static NOINLINE size_t with_frame_pointer(unsigned depth)
{
    EXPECT_CALLER();
    size_t count = depth > 0 ? with_realigned_stack(depth - 1) : check_stack();
    expected_count--;
    return count;
}

static void follows_calls(void)
{
    size_t shallow = recurse(0);
    CHECK(recurse(DEPTH) == shallow + DEPTH);
    with_realigned_stack(5);
    with_frame_pointer(3);
}

/* ---- Stacks of which now more, now less is as it was. */

static uint64_t random_state = 88172645463325252u;

static unsigned next_random(unsigned below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state >> 33) % below;
}

static NOINLINE void wander(unsigned depth);

/* Two callers whose frames are as large as one another's. */
static NOINLINE void wander_left(unsigned depth)
{
    EXPECT_CALLER();
    wander(depth);
    __asm__ volatile("" ::: "memory");
    expected_count--;
}

static NOINLINE void wander_right(unsigned depth)
{
    EXPECT_CALLER();
    wander(depth);
    __asm__ volatile("" ::: "memory");
    expected_count--;
}

static NOINLINE void wander_far(unsigned depth)
{
    EXPECT_CALLER();
    char variable[16 * (1 + next_random(4))];
    memset(variable, 1, sizeof variable);
    __asm__ volatile("" ::"r"(variable) : "memory");
    wander(depth);
    expected_count--;
}

static NOINLINE void wander(unsigned depth)
{
    static void (*const ways[])(unsigned) = {wander_left, wander_right, wander_far};
    EXPECT_CALLER();
    for (unsigned turns = 1 + next_random(3); turns > 0; turns--) {
        check_stack();
        if (depth > 0)
            ways[next_random(3)](depth - 1);
    }
    expected_count--;
}

static void is_not_misled_by_what_was(void)
{
    for (int round = 0; round < 20 * HAK_TEST_WORK_PERCENT / 100 + 2; round++)
        wander(1 + next_random(8));
}

static int compare(const void *a, const void *b)
{
    check_stack();
    return *(const int *)a - *(const int *)b;
}

static void follows_calls_through_libc(void)
{
    int numbers[] = {2, 1};
    EXPECT_CALLER();
    qsort(numbers, 2, sizeof numbers[0], compare);
    expected_count--;
}

static void on_signal(int number)
{
    (void)number;
    EXPECT_CALLER();
    check_stack();
    expected_count--;
}

static NOINLINE void interrupted(void)
{
    EXPECT_CALLER();
    CHECK(raise(SIGUSR1) == 0);
    expected_count--;
}

static void follows_calls_out_of_handlers(void)
{
    static char stack[64 << 10];
    const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = on_signal};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    interrupted();
    action.sa_flags = SA_ONSTACK;
    CHECK(sigaltstack(&alternate, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    interrupted();
}

/* A sound stack ends where libc runs what the thread was made for, where that is known of libc; a copied one where the thread began. */
#if defined(__x86_64__) && defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 35)
enum { BEYOND = 1 };
#else
enum { BEYOND = 0 };
#endif

static void *in_thread(void *unused)
{
    uintptr_t calls[MOST];
    struct os_frame here = os_frame_here();
    size_t count_copied = unwind(&here, UNWIND_BROKEN, calls, MOST);
    CHECK(BEYOND == 0 || unwind(&here, UNWIND_SOUND, calls, MOST) + BEYOND == count_copied);
    recurse(3);
    return unused;
}

static void ends_with_the_thread(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, in_thread, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void takes_no_more_than_fits(void)
{
    uintptr_t calls[4] = {0};
    struct os_frame here = os_frame_here();
    CHECK(unwind(&here, UNWIND_BROKEN, calls, 1) == 1 && calls[0] == here.pc && calls[1] == 0);
    CHECK(unwind(&here, UNWIND_BROKEN, calls, 2) == 2 && calls[2] == 0);
    CHECK(unwind(&here, UNWIND_BROKEN, calls, 0) == 0);
}

/* Whatever stands on the stack, and wherever the registers point. One that counts as sound is there at the stack pointer. */
static void ends_on_a_broken_stack(void)
{
    static uintptr_t stack[512];
    uintptr_t calls[MOST];
    struct os_frame here = os_frame_here();
    uint64_t state = 1;
    for (int round = 0; round < 2000; round++) {
        for (size_t i = 0; i < sizeof stack / sizeof stack[0]; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            uintptr_t choices[] = {0, state, here.pc + (state >> 52), (uintptr_t)&stack[state >> 55], (uintptr_t)abort + 1};
            stack[i] = choices[(state >> 33) % (sizeof choices / sizeof choices[0])];
        }
        struct os_frame broken = {
            .pc = here.pc + (state >> 54), .sp = (uintptr_t)&stack[state >> 60], .fp = (uintptr_t)&stack[state >> 56]};
        CHECK(unwind(&broken, UNWIND_BROKEN, calls, MOST) <= MOST);
        CHECK(unwind(&broken, UNWIND_SOUND, calls, MOST) <= MOST);
        CHECK(unwind_again(&broken, &memo, calls, UNWIND_MEMO) <= UNWIND_MEMO);
        broken.sp = state;
        broken.fp = UINTPTR_MAX - state % 64;
        CHECK(unwind(&broken, UNWIND_BROKEN, calls, MOST) <= MOST);
    }
}

#if defined(__x86_64__)

enum { STACK_BYTES = 64 << 10 };

static char *other_stack; /* what lies above it is not to be read */

static void *other_top(void)
{
    return other_stack + STACK_BYTES;
}

static NOINLINE void take_stack(void)
{
    uintptr_t calls[MOST];
    struct os_frame here = os_frame_here();
    for (unsigned most = 1; most <= UNWIND_MEMO; most++) {
        CHECK(unwind(&here, UNWIND_SOUND, calls, most) <= most);
        CHECK(unwind_again(&here, &memo, calls, most) <= most);
        CHECK(calls[0] == here.pc);
    }
}

/* As coroutines do: to the compiler the stack pointer is as it was. */
static NOINLINE void call_on(void *top, void (*function)(void))
{
    register void *to __asm__("r12") = top;
    register void (*called)(void) __asm__("r13") = function;
    __asm__ volatile("mov %%rsp, %%rbx\n\tmov %0, %%rsp\n\tcall *%1\n\tmov %%rbx, %%rsp"
                     : "+r"(to), "+r"(called)
                     :
                     : "rbx", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
}

static void does_not_leave_a_stack_of_the_program_s_own(void)
{
    other_stack = mmap(NULL, 2 * STACK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(other_stack != MAP_FAILED && mprotect(other_stack, STACK_BYTES, PROT_READ | PROT_WRITE) == 0);
    for (int i = 0; i < 3; i++)
        call_on(other_top(), take_stack);
    /* Another's memory lies above, for a while. */
    CHECK(mprotect(other_top(), STACK_BYTES, PROT_READ | PROT_WRITE) == 0);
    for (int i = 0; i < 3; i++)
        call_on(other_top(), take_stack);
    CHECK(mprotect(other_top(), STACK_BYTES, PROT_NONE) == 0);
    for (int i = 0; i < 3; i++)
        call_on(other_top(), take_stack);
    CHECK(munmap(other_stack, 2 * STACK_BYTES) == 0);
}

#endif

static void needs_to_know_libraries(void **state)
{
    if (!process_finds_modules())
        skip();
    unit_run(state);
}

/* The emulator's code to which handlers return is no function. */
static void needs_a_kernel(void **state)
{
    if (process_is_emulated())
        skip();
    needs_to_know_libraries(state);
}

#define UNIT_TEST_IF(condition, function) {#function, condition, NULL, NULL, &(struct unit_case){function}}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(follows_calls),
        UNIT_TEST_IF(needs_to_know_libraries, follows_calls_through_libc),
        UNIT_TEST_IF(needs_a_kernel, follows_calls_out_of_handlers),
        UNIT_TEST(ends_with_the_thread),
        UNIT_TEST(is_not_misled_by_what_was),
        UNIT_TEST(takes_no_more_than_fits),
        UNIT_TEST(ends_on_a_broken_stack),
#if defined(__x86_64__)
        UNIT_TEST(does_not_leave_a_stack_of_the_program_s_own),
#endif
    };
    return cmocka_run_group_tests_name("unwind", tests, NULL, NULL);
}
