/* base/write.h: a write that fails leaves the process alone. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/write.h"
#include "process.h"

static long write_word(int file)
{
    char word[] = "word";
    errno = 99;
    long result = write_quietly(file, &(struct iovec){word, 4}, 1);
    CHECK(errno == 99);
    return result;
}

static bool is_pending(int signal)
{
    sigset_t set;
    CHECK(sigpending(&set) == 0);
    return sigismember(&set, signal) == 1;
}

static bool is_blocked(int signal)
{
    sigset_t set;
    CHECK(sigprocmask(SIG_SETMASK, NULL, &set) == 0);
    return sigismember(&set, signal) == 1;
}

static void block(int signal, bool whether)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    CHECK(sigprocmask(whether ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL) == 0);
}

static volatile sig_atomic_t heard;

static void hear(int signal)
{
    heard = signal;
}

/* Each with the signal's default, which ends the process. */
static int unread_pipe(void)
{
    int ends[2];
    CHECK(pipe(ends) == 0 && close(ends[0]) == 0);
    return ends[1];
}

static int full_file(void)
{
    char path[] = "/tmp/hakmem-write-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0 && unlink(path) == 0);
    return file;
}

static void what_can_be_written_is(void)
{
    int ends[2];
    char got[8];
    CHECK(pipe(ends) == 0);
    CHECK(write_quietly(ends[1], (struct iovec[]){{"ab", 2}, {"c", 1}}, 2) == 3);
    CHECK(read(ends[0], got, sizeof got) == 3 && got[0] == 'a' && got[2] == 'c');
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
    CHECK(write_word(-1) == -EBADF);
}

static void a_pipe_that_nobody_reads_ends_nothing(void)
{
    CHECK(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    int file = unread_pipe();
    CHECK(write_word(file) == -EPIPE);
    CHECK(!is_pending(SIGPIPE) && !is_blocked(SIGPIPE) && !is_blocked(SIGXFSZ));
    CHECK(signal(SIGPIPE, hear) != SIG_ERR);
    CHECK(write_word(file) == -EPIPE && heard == 0);
    CHECK(write(file, "x", 1) == -1 && heard == SIGPIPE); /* the program's own writes are as ever */
    CHECK(close(file) == 0 && signal(SIGPIPE, SIG_DFL) != SIG_ERR);
}

static void nor_does_a_file_at_its_limit(void)
{
    CHECK(signal(SIGXFSZ, SIG_DFL) != SIG_ERR);
    int file = full_file();
    process_limit_files(2);
    CHECK(write_word(file) == 2);
    CHECK(write_word(file) == -EFBIG);
    CHECK(!is_pending(SIGXFSZ) && !is_blocked(SIGXFSZ));
    process_limit_files(RLIM_INFINITY);
    CHECK(close(file) == 0);
}

static void a_signal_that_waits_for_the_program_waits_on(void)
{
    int file = unread_pipe();
    block(SIGPIPE, true);
    CHECK(write_word(file) == -EPIPE && !is_pending(SIGPIPE) && is_blocked(SIGPIPE));
    CHECK(raise(SIGPIPE) == 0 && is_pending(SIGPIPE));
    CHECK(write_word(file) == -EPIPE && is_pending(SIGPIPE) && is_blocked(SIGPIPE));
    heard = 0;
    CHECK(signal(SIGPIPE, hear) != SIG_ERR);
    block(SIGPIPE, false);
    CHECK(heard == SIGPIPE);
    CHECK(close(file) == 0 && signal(SIGPIPE, SIG_DFL) != SIG_ERR);
}

enum { LONG = 300000 };

static void read_all(int file)
{
    static char piece[4096];
    size_t all = 0;
    for (ssize_t got; (got = read(file, piece, sizeof piece)) > 0;) {
        all += (size_t)got;
        usleep(100);
    }
    _exit(all == LONG ? 0 : 1);
}

/* Longer than what the pipe holds, which does not block who writes. */
static void a_reader_is_waited_for(void)
{
    static char text[LONG];
    int ends[2], status;
    size_t written;
    CHECK(pipe(ends) == 0 && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
    pid_t reader = fork();
    CHECK(reader >= 0);
    if (reader == 0) {
        CHECK(close(ends[1]) == 0);
        read_all(ends[0]);
    }
    CHECK(write_whole(ends[1], text, LONG, &written) == 0 && written == LONG);
    CHECK(close(ends[1]) == 0 && waitpid(reader, &status, 0) == reader && status == 0);
}

static void but_not_for_ever(void)
{
    static char text[LONG];
    int ends[2];
    size_t written;
    CHECK(pipe(ends) == 0 && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
    CHECK(write_whole(ends[1], text, LONG, &written) == EAGAIN && written > 0 && written < LONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(what_can_be_written_is),
        UNIT_TEST(a_pipe_that_nobody_reads_ends_nothing),
        UNIT_TEST(nor_does_a_file_at_its_limit),
        UNIT_TEST(a_signal_that_waits_for_the_program_waits_on),
        UNIT_TEST(a_reader_is_waited_for),
        UNIT_TEST(but_not_for_ever),
    };
    return cmocka_run_group_tests_name("write", tests, NULL, NULL);
}
