/* learn/policy_file.h: what was learned, from one run to the next. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/knobs.h"
#include "config/policy.h"
#include "learn/policy_file.h"
#include "os/program.h"
#include "process.h"

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
    snprintf(line, sizeof line, "hakmem: warning: %s: no such file, and nothing learns; nothing is loaded\n", path);
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
    snprintf(line, sizeof line, "hakmem: warning: %s: cannot be read, error 21; nothing is saved\n", path);
    CHECK_SAYS(save_bad, 0, line);
    CHECK(rmdir(path) == 0);
    /* Nobody waits for who writes a pipe. */
    CHECK(mkfifo(path, 0600) == 0);
    snprintf(line, sizeof line, "hakmem: warning: %s: line 1: it is empty; nothing is loaded\n", path);
    CHECK_SAYS(load_bad, 0, line);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_TEST(the_next_run_starts_warm),
        UNIT_TEST(what_it_says_of_others_stays),
        UNIT_TEST(more_evidence_is_not_written_over),
        UNIT_TEST(what_cannot_be_used_gets_one_line),
        UNIT_TEST(places_that_cannot_be_written_get_one_line),
        UNIT_TEST(a_full_file_is_left_alone),
        UNIT_TEST(the_program_is_known),
    };
    return cmocka_run_group_tests_name("policy_file", tests, NULL, NULL);
}
