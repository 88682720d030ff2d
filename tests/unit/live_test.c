/* api/live.h: the page that tools read, where there is no memory for it, and in children. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/live.h"
#include "config/paths.h"
#include "hakmem.h"
#include "os/os.h"
#include "process.h"
#include "refused_call.h"

enum { THREADS = 60, CHILDREN = 30, PAGE_MOST = 1 << 20, LENGTH_AT = 560, TEXT_AT = 1024 };

static char directory[64];
static char path[128];
static char text[PAGE_MOST];

static void make_directory(void)
{
    strcpy(directory, "/tmp/hakmem-live-XXXXXX");
    CHECK(mkdtemp(directory) != NULL && path_set(PATH_LIVE, directory));
    snprintf(path, sizeof path, "%s/%d", directory, (int)getpid());
}

/* The text's length in the file. */
static uint32_t read_page(void)
{
    uint32_t length;
    int file = open(path, O_RDONLY);
    CHECK(file >= 0);
    CHECK(read(file, text, sizeof text) == PAGE_MOST && close(file) == 0);
    CHECK(strcmp(text, "hakmemL") == 0);
    memcpy(&length, text + LENGTH_AT, sizeof length);
    CHECK(length < PAGE_MOST - TEXT_AT);
    CHECK(length == 0 || (text[TEXT_AT] == '{' && text[TEXT_AT + length - 1] == '\n'));
    return length;
}

static void end(void)
{
    live_end();
    CHECK(rmdir(directory) == 0);
}

static pthread_barrier_t all_are_born;

static void *be_there(void *unused)
{
    hak_free(hak_malloc(100));
    (void)pthread_barrier_wait(&all_are_born);
    (void)pthread_barrier_wait(&all_are_born);
    return unused;
}

/* Each thread is a row of the text. */
static void grows_with_its_text(void)
{
    pthread_t threads[THREADS];
    make_directory();
    hak_free(hak_malloc(100));
    CHECK(live_update() != NULL);
    uint32_t before = read_page();
    CHECK(before > 0);
    CHECK(pthread_barrier_init(&all_are_born, NULL, THREADS + 1) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, be_there, NULL) == 0);
    (void)pthread_barrier_wait(&all_are_born);
    CHECK(live_update() != NULL);
    uint32_t length = read_page();
    CHECK(length > before + THREADS * 100 && length > 16 << 10);
    (void)pthread_barrier_wait(&all_are_born);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    end();
}

/* A file system of one page, for this process alone. False: who tests may not make one. */
static bool mount_small(void)
{
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        return false;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0
           && mount("tmpfs", directory, "tmpfs", 0, "size=4k,mode=700") == 0;
}

static const char no_mount[] = "no rights to a mount namespace";

static void lives_without_memory_for_its_text(void)
{
    make_directory();
    if (!mount_small()) {
        CANNOT_TRY(no_mount);
    } else {
        CHECK(live_update() != NULL && read_page() == 0);
        CHECK(live_update() != NULL && live_words() != NULL);
        live_end();
        CHECK(umount2(directory, MNT_DETACH) == 0);
    }
    CHECK(rmdir(directory) == 0);
}

static void find_no_room(uintptr_t unused)
{
    (void)unused;
    snprintf(path, sizeof path, "%s/%d", directory, (int)getpid());
    CHECK(live_update() == NULL && live_words() == NULL && access(path, F_OK) != 0);
    CHECK(live_update() == NULL);
}

static void lives_without_memory(void)
{
    char other[128];
    char warning[256];
    make_directory();
    if (!mount_small()) {
        CANNOT_TRY(no_mount);
    } else {
        snprintf(other, sizeof other, "%s/other", directory);
        int file = open(other, O_WRONLY | O_CREAT, 0600);
        CHECK(file >= 0 && write(file, text, os_page_size()) == (ssize_t)os_page_size());
        snprintf(warning, sizeof warning, "hakmem: warning: HAKMEM_LIVE: no page can be made in %s: error %d\n", directory, ENOSPC);
        CHECK_SAYS(find_no_room, 0, warning);
        CHECK(close(file) == 0 && unlink(other) == 0);
        CHECK(umount2(directory, MNT_DETACH) == 0);
    }
    CHECK(rmdir(directory) == 0);
}

/* The limit on a file's size kills whoever makes one longer, unless that is prevented. */
static void find_files_limited(uintptr_t unused)
{
    process_limit_files(PAGE_MOST / 2);
    find_no_room(unused);
}

static void lives_with_a_limit_on_files(void)
{
    char warning[256];
    make_directory();
    snprintf(warning, sizeof warning, "hakmem: warning: HAKMEM_LIVE: no page can be made in %s: error %d\n", directory, EFBIG);
    CHECK_SAYS(find_files_limited, 0, warning);
    CHECK(rmdir(directory) == 0);
}

/* So does its child, of which it need not be said again. */
static void find_no_directory(uintptr_t unused)
{
    (void)unused;
    CHECK(path_set(PATH_LIVE, "/nonexistent/pages") && live_update() == NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        _exit(live_update() == NULL ? 0 : 1);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void says_once_that_there_is_no_page(void)
{
    CHECK_SAYS(find_no_directory, 0, "hakmem: warning: HAKMEM_LIVE: no page can be made in /nonexistent/pages: error 2\n");
}

/* In a file system that writes copies, and has become full. */
static void stays_as_it_is_where_there_is_no_room_any_more(void)
{
    if (!calls_can_be_refused(__func__))
        return;
    make_directory();
    CHECK(live_update() != NULL && live_words() != NULL);
    uint32_t length = read_page();
    refuse_call(SYS_getcpu, EFAULT);
    CHECK(live_update() != NULL && live_words() == NULL);
    CHECK(length > 0 && read_page() == length);
    end();
}

static bool stop;

static void *update(void *unused)
{
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
        (void)live_update();
    return unused;
}

/* Whatever another thread of the parent was at. */
static void children_have_their_own(void)
{
    pthread_t thread;
    make_directory();
    CHECK(live_update() != NULL);
    CHECK(pthread_create(&thread, NULL, update, NULL) == 0);
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            bool made = live_update() != NULL;
            live_end();
            _exit(made ? 0 : 1);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(read_page() > 0);
    end();
}

/* The parent's number may be its own too, in another namespace. */
static void a_child_of_the_same_number_leaves_the_page(void)
{
    make_directory();
    CHECK(live_update() != NULL && live_is_own());
    pid_t own = getpid();
    live_forked();
    CHECK(getpid() == own && !live_is_own() && live_words() == NULL);
    live_end();
    CHECK(access(path, F_OK) == 0);
    CHECK(live_update() != NULL && live_is_own()); /* one of its own */
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(grows_with_its_text), UNIT_TEST(a_child_of_the_same_number_leaves_the_page),
        UNIT_TEST(lives_without_memory_for_its_text),
        UNIT_TEST(lives_without_memory),
        UNIT_TEST(lives_with_a_limit_on_files),
        UNIT_TEST(stays_as_it_is_where_there_is_no_room_any_more),
        UNIT_TEST(says_once_that_there_is_no_page),
        UNIT_TEST(children_have_their_own),
    };
    return cmocka_run_group_tests_name("live", tests, NULL, NULL);
}
