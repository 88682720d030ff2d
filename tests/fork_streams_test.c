/*
 * fork while one thread flushes all streams and another allocates with a stream locked: the three must not wait for each other in
 * a ring. A hang ends in SIGALRM.
 */
#include "check.h"
#include "family.h"
#include "scale.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEST_SECONDS = 100, FORKS = 1000, BLOCKS = 64, BLOCK_BYTES = 3000 };

static atomic_bool stop;
static atomic_uint flushes;

/* The stream is locked. */
static ssize_t write_with_blocks(void *cookie, const char *text, size_t length)
{
    void *blocks[BLOCKS];
    (void)cookie;
    (void)text;
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = family.malloc(BLOCK_BYTES);
        CHECK(blocks[i] != NULL);
    }
    for (int i = 0; i < BLOCKS; i++)
        family.free(blocks[i]);
    return (ssize_t)length;
}

static void *writing_thread(void *stream)
{
    while (!atomic_load(&stop))
        CHECK(fputs("a line\n", stream) >= 0);
    return NULL;
}

static void *flushing_thread(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop)) {
        CHECK(fflush(NULL) == 0);
        atomic_fetch_add(&flushes, 1);
    }
    return NULL;
}

static void fork_once(void)
{
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(TEST_SECONDS);
        fflush(NULL); /* its lock is free */
        family.free(family.malloc(BLOCK_BYTES));
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    pthread_t threads[2];
    family_require_hakmem();
    alarm(TEST_SECONDS);
    family.free(family.malloc(BLOCK_BYTES)); /* by libc's names pthread_create sees to it that the heap starts before */
    FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_with_blocks});
    CHECK(stream != NULL && setvbuf(stream, NULL, _IONBF, 0) == 0);
    CHECK(pthread_create(&threads[0], NULL, writing_thread, stream) == 0);
    CHECK(pthread_create(&threads[1], NULL, flushing_thread, NULL) == 0);
    for (size_t i = 0; i < scaled_work(FORKS); i++)
        fork_once();
    atomic_store(&stop, true);
    CHECK(pthread_join(threads[0], NULL) == 0 && pthread_join(threads[1], NULL) == 0);
    CHECK(atomic_load(&flushes) > 0 && fclose(stream) == 0);
    printf("fork_streams: ok, %u flushes\n", atomic_load(&flushes));
    return 0;
}
