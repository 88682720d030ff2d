/*
 * Runs a fuzzer over inputs that are kept, where there is no libFuzzer.
 *
 *   fuzz_NAME FILE|DIRECTORY...
 *
 * Each input's path is printed before it runs, so that the last one is the one that failed.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"
#include "fuzz.h"

enum { PATH_MOST = 4096, INPUT_MOST = 1 << 20 };

int LLVMFuzzerInitialize(int *count, char ***arguments) __attribute__((weak));

/* In memory of just its size, so that a sanitizer sees who reads beyond. */
static void replay_file(const char *path)
{
    static uint8_t buffer[INPUT_MOST];
    puts(path);
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    size_t size = fread(buffer, 1, sizeof buffer, file);
    CHECK(size < sizeof buffer && ferror(file) == 0);
    fclose(file);
    uint8_t *input = malloc(size > 0 ? size : 1);
    CHECK(input != NULL);
    memcpy(input, buffer, size);
    (void)LLVMFuzzerTestOneInput(input, size);
    free(input);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* In the order of their names. Returns how many. */
static size_t replay_directory(const char *directory)
{
    struct dirent **entries;
    char path[PATH_MOST];
    int count = scandir(directory, &entries, is_visible, alphasort);
    CHECK(count >= 0);
    for (int i = 0; i < count; i++) {
        CHECK(snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name) < (int)sizeof path);
        replay_file(path);
        free(entries[i]);
    }
    free(entries);
    return (size_t)count;
}

int main(int count, char **arguments)
{
    size_t replayed = 0;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    if (LLVMFuzzerInitialize != NULL)
        CHECK(LLVMFuzzerInitialize(&count, &arguments) == 0);
    for (int i = 1; i < count; i++) {
        struct stat status;
        CHECK(stat(arguments[i], &status) == 0);
        if (S_ISDIR(status.st_mode)) {
            replayed += replay_directory(arguments[i]);
        } else {
            replay_file(arguments[i]);
            replayed++;
        }
    }
    printf("%zu inputs\n", replayed);
    CHECK(replayed > 0);
    return 0;
}
