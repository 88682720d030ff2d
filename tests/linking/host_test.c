/*
 * A program that opens a plugin: who serves each of the two, and what happens to blocks that go from one to the other.
 *
 *   host_test PLUGIN local|deep HOST GUEST same|apart
 *
 * `deep` opens it with RTLD_DEEPBIND: the plugin sees its own libraries before the program's. HOST and GUEST are the
 * usable sizes of blocks of 100 bytes: 112 is hakmem's, 104 glibc's. `same`: one allocator serves both, and either
 * frees the other's blocks. `apart`: each frees its own; hakmem ends the process with a message when it is given
 * another allocator's block, be that glibc's or another copy of hakmem's, and has changed nothing before.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "child.h"

enum { THREADS = 4, ROUNDS = 5000, BLOCKS = 64, OURS = 112 };

#define MESSAGE "hakmem: fatal: invalid free of 0x[0-9a-f]+ \\(thread [0-9]+\\)"

struct side {
    void *(*malloc)(size_t size);
    void (*free)(void *block);
    size_t (*usable_size)(void *block);
};

static struct side host = {malloc, free, malloc_usable_size};
static struct side guest;
static char *(*guest_copy)(const char *text);
static bool same;

static void *find(void *plugin, const char *name)
{
    void *function = dlsym(plugin, name);
    CHECK(function != NULL);
    return function;
}

static void *open_plugin(const char *path, bool deep)
{
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL | (deep ? RTLD_DEEPBIND : 0));
    if (plugin == NULL)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(plugin != NULL);
    *(void **)&guest.malloc = find(plugin, "guest_malloc");
    *(void **)&guest.free = find(plugin, "guest_free");
    *(void **)&guest.usable_size = find(plugin, "guest_usable_size");
    *(void **)&guest_copy = find(plugin, "guest_copy");
    return plugin;
}

static size_t size_of_100(const struct side *side)
{
    void *block = side->malloc(100);
    CHECK(block != NULL);
    const size_t size = side->usable_size(block);
    side->free(block);
    return size;
}

static void fill(const struct side *side, unsigned char **blocks, size_t round)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        const size_t size = 1 + (round * 131 + i * 977) % 40000;
        blocks[i] = side->malloc(size);
        CHECK(blocks[i] != NULL);
        blocks[i][0] = blocks[i][size - 1] = (unsigned char)i;
    }
}

static void empty(const struct side *side, unsigned char **blocks)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        CHECK(blocks[i][0] == i);
        side->free(blocks[i]);
    }
}

static void work(size_t rounds)
{
    unsigned char *of_host[BLOCKS];
    unsigned char *of_guest[BLOCKS];
    for (size_t round = 0; round < rounds; round++) {
        fill(&host, of_host, round);
        fill(&guest, of_guest, round);
        empty(same ? &guest : &host, of_host);
        empty(same ? &host : &guest, of_guest);
    }
}

static void *work_in_thread(void *unused)
{
    (void)unused;
    work(ROUNDS / BLOCKS);
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work_in_thread, NULL) == 0);
    for (int i = 0; i < 10; i++) {
        const pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            work(1);
            _exit(0);
        }
        int status = 1;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void guest_frees_hosts(uintptr_t size)
{
    guest.free(host.malloc(size));
}

static void host_frees_guests(uintptr_t size)
{
    host.free(guest.malloc(size));
}

static void check_dies(void (*action)(uintptr_t size))
{
    const size_t sizes[] = {1, 100, 5000, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const struct child child = child_run(action, sizes[i]);
        CHECK(child_died_saying(&child, MESSAGE));
    }
}

/* A thread that has used the plugin ends after the program has closed it. */
static pthread_barrier_t closed;

static void *outlive_plugin(void *unused)
{
    work_in_thread(unused);
    pthread_barrier_wait(&closed);
    pthread_barrier_wait(&closed);
    return NULL;
}

static void close_before_thread_ends(void *plugin)
{
    pthread_t thread;
    CHECK(pthread_barrier_init(&closed, NULL, 2) == 0);
    CHECK(pthread_create(&thread, NULL, outlive_plugin, NULL) == 0);
    pthread_barrier_wait(&closed);
    CHECK(dlclose(plugin) == 0);
    pthread_barrier_wait(&closed);
    pthread_join(thread, NULL);
    const pid_t child = fork(); /* handlers of the closed plugin do not run */
    CHECK(child >= 0);
    if (child == 0)
        _exit(0);
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 6);
    same = strcmp(argv[5], "same") == 0;
    void *plugin = open_plugin(argv[1], strcmp(argv[2], "deep") == 0);
    const size_t host_size = size_of_100(&host);
    const size_t guest_size = size_of_100(&guest);
    printf("host: blocks of 100 bytes have %zu in the program, %zu in the plugin\n", host_size, guest_size);
    fflush(stdout);
    CHECK(host_size == strtoul(argv[3], NULL, 10));
    CHECK(guest_size == strtoul(argv[4], NULL, 10));

    /* The C library's own blocks are the program's allocator's. */
    char *text = guest_copy("a text of more than sixteen bytes");
    CHECK(strcmp(text, "a text of more than sixteen bytes") == 0);
    host.free(text);

    work(100);
    run_threads();
    if (!same && guest_size == OURS)
        check_dies(guest_frees_hosts);
    if (!same && host_size == OURS)
        check_dies(host_frees_guests);
    close_before_thread_ends(plugin);
    puts("host: ok");
    return 0;
}
