/*
 * libhakmem.so itself opened by a program that glibc serves: its thread-local word must fit in what the loader keeps
 * for libraries that come late, and must be right in threads that were there before. Only the hak_ names are hakmem's.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void *(*hak_malloc)(size_t size);
static void (*hak_free)(void *block);
static size_t (*hak_usable_size)(const void *block);

static pthread_barrier_t opened;

static void use(void)
{
    void *blocks[1000];
    for (size_t i = 0; i < 1000; i++) {
        blocks[i] = hak_malloc(i * 7 + 1);
        CHECK(blocks[i] != NULL && hak_usable_size(blocks[i]) >= i * 7 + 1);
        memset(blocks[i], (int)i, i * 7 + 1);
    }
    for (size_t i = 0; i < 1000; i++) {
        CHECK(*(unsigned char *)blocks[i] == (unsigned char)i);
        hak_free(blocks[i]);
    }
}

static void *thread_from_before(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&opened);
    use();
    return NULL;
}

static void *thread_from_after(void *unused)
{
    (void)unused;
    use();
    return NULL;
}

static void *open_library(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(library != NULL);
    *(void **)&hak_malloc = dlsym(library, "hak_malloc");
    *(void **)&hak_free = dlsym(library, "hak_free");
    *(void **)&hak_usable_size = dlsym(library, "hak_malloc_usable_size");
    CHECK(hak_malloc != NULL && hak_free != NULL && hak_usable_size != NULL);
    return library;
}

enum { HANDLED = 7 };

static void handler_from_before(int number)
{
    (void)number;
    _exit(HANDLED);
}

static void touch_what_is_free(int out)
{
    CHECK(setenv("HAKMEM_GUARD", "1", 1) == 0 && dup2(out, STDERR_FILENO) == STDERR_FILENO);
    CHECK(signal(SIGSEGV, handler_from_before) != SIG_ERR);
    open_library();
    for (int i = 0; i < 1000; i++) {
        volatile char *block = hak_malloc(100);
        hak_free((void *)block);
        (void)block[0];
    }
    _exit(0);
}

/* Of a handler that was there before, libc knows, and the library does not. */
static void a_guarded_block_is_reported_before_the_programs_handler(void)
{
    int out[2];
    int status;
    char text[4096] = "";
    CHECK(pipe(out) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        touch_what_is_free(out[1]);
    close(out[1]);
    for (size_t used = 0, more; (more = (size_t)read(out[0], text + used, sizeof text - 1 - used)) - 1 < sizeof text;)
        used += more;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == HANDLED);
    CHECK(strstr(text, "heap-use-after-free") != NULL);
}

int main(void)
{
    pthread_t before;
    pthread_t after;
    a_guarded_block_is_reported_before_the_programs_handler();
    CHECK(pthread_barrier_init(&opened, NULL, 2) == 0);
    CHECK(pthread_create(&before, NULL, thread_from_before, NULL) == 0);
    void *library = open_library();

    void *block = hak_malloc(100);
    CHECK(hak_usable_size(block) == 112);
    void *of_libc = malloc(100);
    CHECK(malloc_usable_size(of_libc) == 104);
    free(of_libc);

    pthread_barrier_wait(&opened);
    use();
    pthread_join(before, NULL);
    CHECK(pthread_create(&after, NULL, thread_from_after, NULL) == 0);
    pthread_join(after, NULL);

    /* It stays, and so do its blocks. */
    CHECK(dlclose(library) == 0);
    use();
    hak_free(block);
    puts("dlopen: ok");
    return 0;
}
