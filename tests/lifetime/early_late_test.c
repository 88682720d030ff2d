/*
 * The first calls of a process, before any constructor, and the last, after every destructor.
 *
 * In order: .preinit_array (the dynamic linker runs it before all constructors), the library's constructor,
 * this program's, main, atexit handlers, this program's destructor, the library's, and last the handler that
 * .preinit_array registered: exit runs handlers backwards, and the dynamic linker's own, which runs all
 * destructors, was registered after it. That handler ends the process with success; without it main's 1 stays.
 * musl has no .preinit_array, and destructors after all handlers: there, the program's first constructor and last
 * destructor do their parts.
 */
#include "check.h"
#include "family.h"
#include "late_library.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *from_preinit;
static char *large_from_preinit;
static char *from_constructor;
static char *from_exit_handler;
static char *from_destructor;
static bool destructor_ran;

static void *new_block(size_t size, int content)
{
    void *block = family.malloc(size);
    CHECK(block != NULL);
    CHECK(family.usable_size(block) >= size);
    memset(block, content, size);
    return block;
}

static void check_and_free(char *block, size_t size, char content)
{
    CHECK(block != NULL);
    CHECK(block[0] == content && block[size - 1] == content);
    family.free(block);
}

static void *allocating_thread(void *argument)
{
    check_and_free(new_block(5000, 't'), 5000, 't');
    family.free(argument);
    return NULL;
}

/* A thread frees a block of this one's and ends. */
static void run_thread(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, allocating_thread, new_block(64, 'x')) == 0);
    pthread_join(thread, NULL);
}

static void after_everything(void)
{
    CHECK(destructor_ran);
    check_and_free(from_destructor, 1234, 'd');
    check_and_free(from_preinit, 100, 'p');
    large_from_preinit = family.realloc(large_from_preinit, 1u << 20);
    check_and_free(large_from_preinit, 100000, 'l');
    for (size_t size = 1; size < 20000; size++) {
        check_and_free(new_block(size, 'a'), size, 'a');
    }
    _exit(0);
}

#if defined(__GLIBC__)
static void register_last(void (*handler)(void))
{
    CHECK(atexit(handler) == 0);
}
#else
static void (*last)(void);

static void register_last(void (*handler)(void))
{
    last = handler;
}

__attribute__((destructor(101))) static void run_last(void)
{
    last();
}
#endif

static void before_everything(int argc, char **argv, char **environment)
{
    (void)argc;
    (void)argv;
    (void)environment;
    from_preinit = new_block(100, 'p');
    large_from_preinit = new_block(100000, 'l');
    family.free(new_block(50, 'x'));
    char *grown = family.realloc(new_block(40, 'g'), 4000);
    check_and_free(grown, 40, 'g');
    register_last(after_everything);
}

#if defined(__GLIBC__)
__attribute__((section(".preinit_array"), used)) static void (*const preinit)(int, char **, char **) =
    before_everything;
#else
__attribute__((constructor(101))) static void preinit(int argc, char **argv, char **environment)
{
    before_everything(argc, argv, environment);
}
#endif

__attribute__((constructor)) static void construct(void)
{
    CHECK(from_preinit != NULL);
    from_constructor = new_block(2000, 'c');
    run_thread();
}

static void at_exit(void)
{
    check_and_free(from_constructor, 2000, 'c');
    from_exit_handler = new_block(33000, 'e');
    run_thread();
}

__attribute__((destructor)) static void destruct(void)
{
    check_and_free(from_exit_handler, 33000, 'e');
    from_destructor = new_block(1234, 'd');
    run_thread();
    destructor_ran = true;
}

int main(void)
{
    family_require_hakmem();
    CHECK(from_constructor != NULL);
    check_and_free(late_library_take(), 300, 'c');
    CHECK(atexit(at_exit) == 0);
    return 1;
}
