/* learn/policy_file.h: what was learned, from one run to the next. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/knobs.h"
#include "config/policy.h"
#include "fake_os.h"
#include "learn/policy_file.h"
#include "os/program.h"
#include "process.h"
#include "refused_call.h"

static char directory[] = "/tmp/hakmem-policy-XXXXXX";
static char path[64];
static struct os_program own;

static void begin(void)
{
    CHECK(mkdtemp(directory) != NULL);
    snprintf(path, sizeof path, "%s/policy", directory);
    os_program(&own);
}

static void end(void)
{
    (void)unlink(path);
    CHECK(rmdir(directory) == 0); /* and nothing else was left there */
}

static void put(const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static char *content(void)
{
    static char text[8192];
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void save(uint64_t epochs)
{
    policy_file_save(path, &(struct policy_evidence){.epochs = epochs, .seconds = 9, .saved = 8});
}

static bool load(uint64_t epochs)
{
    struct policy_evidence evidence;
    bool loaded = policy_file_load(path, true, &evidence);
    CHECK(evidence.epochs == (loaded ? epochs : 0));
    return loaded;
}

static void the_next_run_starts_warm(void)
{
    begin();
    knob_set(KNOB_PURGE_MS, 0, 4321);
    save(3);
    struct stat status;
    CHECK(stat(path, &status) == 0 && (status.st_mode & 0777) == 0600);
    CHECK(policy_set_mode("balanced") && policy.purge_ms == 1000);
    CHECK(load(3) && policy.purge_ms == 4321);
    end();
}

static void what_it_says_of_others_stays(void)
{
    static const char others[] = "# mine\nhakmem-policy 1\n# of b\nprogram /b\nsize 1\nknob purge_ms 1\nend\n# end of b\n";
    begin();
    put(others);
    knob_set(KNOB_PURGE_MS, 0, 5);
    save(1);
    CHECK(strncmp(content(), others, strlen(others)) == 0);
    size_t length = strlen(content());
    save(2);
    CHECK(strlen(content()) == length && strncmp(content(), others, strlen(others)) == 0);
    CHECK(load(2));
    end();
}

static void more_evidence_is_not_written_over(void)
{
    begin();
    knob_set(KNOB_PURGE_MS, 0, 5);
    save(7);
    knob_set(KNOB_PURGE_MS, 0, 6);
    save(6);
    CHECK(load(7) && policy.purge_ms == 5);
    knob_set(KNOB_PURGE_MS, 0, 6);
    save(7);
    CHECK(load(7) && policy.purge_ms == 6);
    end();
}

static void load_bad(uintptr_t must_be)
{
    struct policy_evidence evidence;
    CHECK(!policy_file_load(path, must_be != 0, &evidence) && policy.purge_ms == 1000);
}

static void save_bad(uintptr_t unused)
{
    (void)unused;
    save(1);
}

static void what_cannot_be_used_gets_one_line(void)
{
    char line[PROGRAM_PATH_MOST + 200];
    char text[PROGRAM_PATH_MOST + 200];
    begin();
    snprintf(line, sizeof line, "hakmem: warning: %s: no such file, or an empty one, and nothing learns; nothing is loaded\n", path);
    CHECK_SAYS(load_bad, 1, line);
    CHECK_SAYS(load_bad, 0, "");
    put("hakmem-policy 1\nprogram /b\nsize 1\nend\n");
    CHECK_SAYS(load_bad, 1, ""); /* each child of a shell would say so */
    snprintf(text, sizeof text, "hakmem-policy 1\nprogram %s\nsize 1\nknob purge_ms 3\nend\n", own.path);
    put(text);
    snprintf(line, sizeof line, "hakmem: warning: %s: learned by another build of %s; nothing is loaded\n", path, own.path);
    CHECK_SAYS(load_bad, 0, line);
    put("hakmem-policy 1\nprogram /b\nsize 1\nknob purge_ms x\nend\n");
    snprintf(line, sizeof line, "hakmem: warning: %s: line 4: purge_ms is 0 to 60000; nothing is loaded\n", path);
    CHECK_SAYS(load_bad, 0, line);
    snprintf(line, sizeof line, "hakmem: warning: %s: line 4: purge_ms is 0 to 60000; nothing is saved\n", path);
    CHECK_SAYS(save_bad, 0, line);
    CHECK(strstr(content(), "purge_ms x") != NULL); /* a damaged file is left alone */
    end();
}

static void places_that_cannot_be_written_get_one_line(void)
{
    char line[200];
    snprintf(path, sizeof path, "/nowhere/policy");
    CHECK_SAYS(save_bad, 0, "hakmem: warning: /nowhere/policy: the learned policy cannot be written, error 2\n");
    begin();
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fseek(file, 1024 * 1024, SEEK_SET) == 0 && fputc('x', file) == 'x' && fclose(file) == 0);
    snprintf(line, sizeof line, "hakmem: warning: %s: no learned policy: larger than 1 MiB; nothing is loaded\n", path);
    CHECK_SAYS(load_bad, 0, line);
    CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0);
    snprintf(line, sizeof line, "hakmem: warning: %s: no regular file; nothing is saved\n", path);
    CHECK_SAYS(save_bad, 0, line);
    CHECK(rmdir(path) == 0);
    /* Nobody waits for who writes a pipe, nor for who reads it. */
    CHECK(mkfifo(path, 0600) == 0);
    CHECK_SAYS(load_bad, 0, "");
    CHECK_SAYS(save_bad, 0, line);
    end();
}

/* A failure of power may leave one. */
static void an_empty_file_is_none(void)
{
    begin();
    put("");
    CHECK_SAYS(load_bad, 0, "");
    CHECK_SAYS(save_bad, 0, "");
    CHECK(strncmp(content(), "hakmem-policy 1\n", 16) == 0 && load(1));
    end();
}

/* A file that could not be read again is not written. */
static void a_full_file_is_left_alone(void)
{
    enum { PROGRAMS = 900, COMMENT = 1000 };
    char line[200];
    char comment[COMMENT];
    begin();
    memset(comment, 'x', sizeof comment - 1);
    comment[COMMENT - 1] = '\0';
    FILE *file = fopen(path, "w");
    CHECK(file != NULL && fputs("hakmem-policy 1\n", file) >= 0);
    for (int i = 0; i < PROGRAMS; i++)
        CHECK(fprintf(file, "program /%d\nsize 1\n#%s\nend\n", i, comment) > 0);
    CHECK(fclose(file) == 0);
    snprintf(line, sizeof line, "hakmem: warning: %s: is full of what other programs have learned; nothing is saved\n", path);
    CHECK_SAYS(save_bad, 0, line);
    CHECK_SAYS(load_bad, 0, ""); /* and it is still sound */
    end();
}

static void the_program_is_known(void)
{
    struct stat status;
    begin();
    /* The emulator knows whose path is asked for, not whose size. */
    CHECK(stat(own.path, &status) == 0 && (own.bytes == (uint64_t)status.st_size || process_is_emulated()));
    CHECK(strstr(own.path, "policy_file") != NULL);
    CHECK(strspn(own.build_id, "0123456789abcdef") == strlen(own.build_id));
    CHECK(own.build_id[0] == '\0' || strlen(own.build_id) >= 16);
    end();
}

static int began[2];
static int waits[2];
static pid_t other;

/* Holds the lock, as a process does that saves, and saves what another program has learned while that waits. */
static void save_of_another(void)
{
    char byte;
    int lock = open(directory, O_RDONLY | O_DIRECTORY);
    CHECK(lock >= 0 && flock(lock, LOCK_EX) == 0);
    CHECK(write(began[1], "", 1) == 1);
    CHECK(read(waits[0], &byte, 1) == 1);
    put("hakmem-policy 1\nprogram /b\nsize 1\nend\n");
    _exit(0); /* and the lock is gone */
}

static void let_the_other_save(uint32_t ms)
{
    int status;
    (void)ms;
    fake_os_before_sleep(NULL);
    CHECK(write(waits[1], "", 1) == 1);
    CHECK(waitpid(other, &status, 0) == other && status == 0);
    other = 0;
}

static void who_saves_at_once_undoes_nothing(void)
{
    char byte;
    begin();
    CHECK(pipe(began) == 0 && pipe(waits) == 0);
    other = fork();
    CHECK(other >= 0);
    if (other == 0)
        save_of_another();
    CHECK(read(began[0], &byte, 1) == 1);
    fake_os_before_sleep(let_the_other_save);
    save(3);
    CHECK(other == 0); /* it has been waited for */
    CHECK(strstr(content(), "program /b\n") != NULL && load(3));
    end();
}

/* Who never lets it go does not stop others. */
static void a_lock_that_stays_is_passed_over(void)
{
    begin();
    int lock = open(directory, O_RDONLY | O_DIRECTORY);
    CHECK(lock >= 0 && flock(lock, LOCK_EX) == 0);
    save(3);
    CHECK(load(3));
    save(4);
    CHECK(flock(lock, LOCK_UN) == 0 && close(lock) == 0);
    CHECK(load(4));
    end();
}

static void copy_file(const char *from, const char *to)
{
    char bytes[65536];
    ssize_t got;
    int in = open(from, O_RDONLY);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    CHECK(in >= 0 && out >= 0);
    while ((got = read(in, bytes, sizeof bytes)) > 0)
        CHECK(write(out, bytes, (size_t)got) == got);
    CHECK(got == 0 && close(in) == 0 && close(out) == 0);
}

/* What the program does in a copy of itself, which is deleted while it runs. */
static int save_as_copy(char **arguments)
{
    snprintf(path, sizeof path, "%s", arguments[1]);
    if (strcmp(arguments[2], "deleted") == 0)
        CHECK(unlink(arguments[0]) == 0);
    save(3);
    return 0;
}

static void check_copy(const char *name, const char *fate)
{
    char copy[80];
    char line[100];
    int status;
    snprintf(copy, sizeof copy, "%s/%s", directory, name);
    copy_file(own.path, copy);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        execl(copy, copy, path, fate, NULL);
        _exit(1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    snprintf(line, sizeof line, "\nprogram %s\n", copy);
    CHECK(strstr(content(), line) != NULL);
    CHECK((unlink(copy) == 0) == (strcmp(fate, "deleted") != 0));
}

static void a_program_that_was_replaced_keeps_its_name(void)
{
    begin();
    if (!process_is_emulated()) {
        check_copy("program", "deleted");
        check_copy("program (deleted)", "stays");
        check_copy("program (deleted)", "deleted");
    }
    end();
}

static void save_unnamed(uintptr_t unused)
{
    (void)unused;
    refuse_call(SYS_readlinkat, EPERM);
    save(1);
}

/* A part without a name could not be read again. */
static void a_program_without_a_name_saves_nothing(void)
{
    char line[200];
    begin();
    snprintf(line, sizeof line, "hakmem: warning: %s: the system does not say which program this is; nothing is saved\n", path);
    if (!process_is_emulated())
        CHECK_SAYS(save_unnamed, 0, line);
    CHECK(access(path, F_OK) != 0);
    end();
}

int main(int count, char **arguments)
{
    if (count == 3)
        return save_as_copy(arguments);
    const struct CMUnitTest tests[] = {
        UNIT_TEST(the_next_run_starts_warm),
        UNIT_TEST(what_it_says_of_others_stays),
        UNIT_TEST(more_evidence_is_not_written_over),
        UNIT_TEST(what_cannot_be_used_gets_one_line),
        UNIT_TEST(places_that_cannot_be_written_get_one_line),
        UNIT_TEST(an_empty_file_is_none),
        UNIT_TEST(a_full_file_is_left_alone),
        UNIT_TEST(the_program_is_known),
        UNIT_TEST(who_saves_at_once_undoes_nothing),
        UNIT_TEST(a_lock_that_stays_is_passed_over),
        UNIT_TEST(a_program_that_was_replaced_keeps_its_name),
        UNIT_TEST(a_program_without_a_name_saves_nothing),
    };
    return cmocka_run_group_tests_name("policy_file", tests, NULL, NULL);
}
