/* base/fail.h: the exact lines. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"
#include "child.h"

static void fail_plainly(uintptr_t value)
{
    fail("%s of %p (thread %d)", "double free", (void *)value, 42);
}

static void fail_at_length(uintptr_t length)
{
    char text[2000];
    memset(text, 'x', length);
    text[length] = '\0';
    fail("%s", text);
}

static void fail_without_stderr(uintptr_t unused)
{
    (void)unused;
    close(STDERR_FILENO);
    fail("nobody hears this");
}

static void note_and_go_on(uintptr_t unused)
{
    (void)unused;
    errno = 99;
    note("here");
    CHECK(close(STDERR_FILENO) == 0);
    note("nobody hears this");
    CHECK(errno == 99);
}

static void note_to_link(uintptr_t link)
{
    CHECK(fail_report_to((const char *)link));
    note("not through the link");
}

static void note_to_full_disk(uintptr_t unused)
{
    (void)unused;
    CHECK(fail_report_to("/dev/full"));
    errno = 99;
    note("not lost");
    CHECK(errno == 99);
}

/* Does the pipe end with the line? */
static void read_to_the_line(int pipe_end)
{
    static const char wanted[] = "heard\n";
    char last[sizeof wanted - 1] = "";
    usleep(50000);
    for (char byte; read(pipe_end, &byte, 1) == 1;) {
        memmove(last, last + 1, sizeof last - 1);
        last[sizeof last - 1] = byte;
    }
    _exit(memcmp(last, wanted, sizeof last) == 0 ? 0 : 1);
}

/* Which does not block who writes. */
static void note_to_full_pipe(uintptr_t unused)
{
    int ends[2];
    int status;
    (void)unused;
    CHECK(pipe(ends) == 0 && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
    while (write(ends[1], "x", 1) == 1) {}
    CHECK(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO && close(ends[1]) == 0);
    pid_t reader = fork();
    CHECK(reader >= 0);
    if (reader == 0) {
        CHECK(close(STDERR_FILENO) == 0);
        read_to_the_line(ends[0]);
    }
    note("heard");
    CHECK(close(STDERR_FILENO) == 0);
    CHECK(waitpid(reader, &status, 0) == reader && status == 0);
}

static void warn_and_go_on(uintptr_t unused)
{
    (void)unused;
    errno = 99;
    warn("%s=%d", "HAKMEM_X", -1);
    CHECK(errno == 99);
    warn("again");
}

static void fatal_line_is_exact(void)
{
    CHECK_DIES(fail_plainly, 0x1234, "hakmem: fatal: double free of 0x1234 \\(thread 42\\)");
}

static void long_line_is_cut(void)
{
    struct child child = child_run(fail_at_length, 1999);
    size_t length = strlen(child.output);
    CHECK(length <= 512 && length > 400);
    CHECK(child.output[length - 1] == '\n');
    CHECK(child_died_saying(&child, "hakmem: fatal: x+"));
}

static void aborts_without_stderr(void)
{
    struct child child = child_run(fail_without_stderr, 0);
    CHECK(WIFSIGNALED(child.status) && WTERMSIG(child.status) == SIGABRT);
    CHECK(child.output[0] == '\0');
}

static void warning_line_is_exact(void)
{
    CHECK_SAYS(warn_and_go_on, 0, "hakmem: warning: HAKMEM_X=-1\nhakmem: warning: again\n");
}

static void notes_keep_errno(void)
{
    CHECK_SAYS(note_and_go_on, 0, "here\n");
}

static void reports_follow_no_link(void)
{
    char directory[] = "/tmp/hakmem-fail-XXXXXX";
    char target[64];
    char link[64];
    struct stat status;
    CHECK(mkdtemp(directory) != NULL);
    snprintf(target, sizeof target, "%s/target", directory);
    snprintf(link, sizeof link, "%s/link", directory);
    CHECK(symlink(target, link) == 0);
    CHECK_SAYS(note_to_link, link, "not through the link\n");
    CHECK(stat(target, &status) != 0 && unlink(link) == 0);
    CHECK_SAYS(note_to_link, link, "");
    CHECK(stat(link, &status) == 0 && status.st_size > 0 && unlink(link) == 0 && rmdir(directory) == 0);
}

static void what_the_report_does_not_take_goes_to_stderr(void)
{
    CHECK_SAYS(note_to_full_disk, 0, "not lost\n");
}

static void who_reads_slowly_hears_all(void)
{
    CHECK_SAYS(note_to_full_pipe, 0, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(fatal_line_is_exact),
        UNIT_TEST(long_line_is_cut),
        UNIT_TEST(aborts_without_stderr),
        UNIT_TEST(warning_line_is_exact),
        UNIT_TEST(notes_keep_errno),
        UNIT_TEST(reports_follow_no_link),
        UNIT_TEST(what_the_report_does_not_take_goes_to_stderr),
        UNIT_TEST(who_reads_slowly_hears_all),
    };
    return cmocka_run_group_tests_name("fail", tests, NULL, NULL);
}
