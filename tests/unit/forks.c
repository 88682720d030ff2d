#include "forks.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap/fork.h"

enum { BLOCKS = 300, CACHED = 100 };

static char *blocks[BLOCKS];
struct heap *forks_heap;

void forks_fill(void *unused)
{
    char *cached[CACHED];
    (void)unused;
    forks_heap = heap_own();
    for (int i = 0; i < CACHED; i++)
        cached[i] = hak_malloc(FORK_SIZE);
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = hak_malloc(FORK_SIZE);
        memset(blocks[i], i % 100 + 1, FORK_SIZE);
    }
    for (int i = 0; i < CACHED; i++)
        hak_free(cached[i]);
    memset(blocks[0], 1, FORK_SIZE);
}

static void check_blocks(void)
{
    for (int i = 0; i < BLOCKS; i++)
        for (int j = 0; j < FORK_SIZE; j++)
            CHECK(blocks[i][j] == i % 100 + 1);
}

void forks_use(void)
{
    char *fresh[1000];
    for (int i = 0; i < 1000; i++) {
        fresh[i] = hak_malloc(FORK_SIZE);
        CHECK(fresh[i] != NULL);
        memset(fresh[i], 0x7f, FORK_SIZE);
    }
    check_blocks();
    for (int i = 0; i < 1000; i++)
        hak_free(fresh[i]);
    for (size_t bytes = 1; bytes < 1000000; bytes *= 3) {
        char *block = hak_malloc(bytes);
        CHECK(block != NULL);
        block[0] = block[bytes - 1] = 1;
        hak_free(block);
    }
}

void forks_use_and_free(void *unused)
{
    (void)unused;
    forks_use();
    for (int i = 0; i < BLOCKS; i++)
        hak_free(blocks[i]);
}

void forks_and(void (*part)(void))
{
    CHECK(!fork_holds_any_lock());
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(!fork_holds_any_lock());
        part();
        _exit(0);
    }
    CHECK(!fork_holds_any_lock());
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}
