/*
 * A set-user-ID program with hakmem in it does not look at HAKMEM_ variables: a bad one, which gives a warning
 * otherwise, gives none. The program runs a copy of itself that belongs to another user; only root can make one, and
 * for others the test counts as skipped.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "check.h"
#include "child.h"

enum { SKIPPED = 77, NOBODY = 65534, NOT_SECURE = 9 };

static const char *program;

static void make_copy(const char *from, const char *to)
{
    struct stat about;
    const int in = open(from, O_RDONLY);
    const int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0700);
    CHECK(in >= 0 && out >= 0 && fstat(in, &about) == 0);
    for (off_t left = about.st_size; left > 0;) {
        const ssize_t copied = sendfile(out, in, NULL, (size_t)left);
        CHECK(copied > 0);
        left -= copied;
    }
    CHECK(fchown(out, NOBODY, NOBODY) == 0);
    CHECK(fchmod(out, 04755) == 0);
    close(in);
    close(out);
}

static void run(uintptr_t wants_secure)
{
    setenv("HAKMEM_MODE", "nonsense", 1);
    setenv("HAKMEM_NONSENSE", "1", 1);
    execl(program, program, wants_secure ? "--secure" : "--plain", (char *)NULL);
    _exit(1);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        void *volatile block = malloc(100); /* volatile: without a use of malloc, hakmem would not be linked */
        free(block);
        const bool secure = getauxval(AT_SECURE) != 0;
        return secure == (strcmp(argv[1], "--secure") == 0) ? 0 : NOT_SECURE;
    }
    if (geteuid() != 0) {
        puts("secure: only root can make a set-user-ID program of another user: skipped");
        return SKIPPED;
    }
    struct statvfs files;
    if (statvfs(argv[0], &files) == 0 && (files.f_flag & ST_NOSUID) != 0) {
        puts("secure: no program is set-user-ID on this file system (nosuid): skipped");
        return SKIPPED;
    }
    program = argv[0];
    const struct child plain = child_run(run, false);
    CHECK(plain.status == 0);
    CHECK(strstr(plain.output, "HAKMEM_MODE=nonsense") != NULL && strstr(plain.output, "HAKMEM_NONSENSE") != NULL);

    char copy[4096];
    snprintf(copy, sizeof copy, "%s-set-user-id", argv[0]);
    make_copy(argv[0], copy);
    program = copy;
    const struct child secure = child_run(run, true);
    unlink(copy);
    if (secure.status != 0 || secure.output[0] != '\0')
        fprintf(stderr, "status 0x%x\n%s", (unsigned)secure.status, secure.output);
    CHECK(secure.status == 0);
    CHECK(secure.output[0] == '\0');
    puts("secure: ok");
    return 0;
}
