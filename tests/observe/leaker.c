/* A service that grows, for trying the tools: the sizes and numbers are known. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct session {
    char *name;
    char *buffer;
};

static char *copy_of(const char *text)
{
    char *copy = malloc(strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}

static inline __attribute__((always_inline)) char *new_buffer(size_t bytes)
{
    return malloc(bytes);
}

__attribute__((noinline)) struct session *open_session(int number)
{
    char name[64];
    snprintf(name, sizeof name, "session %d of a client with a long name", number);
    struct session *session = malloc(sizeof *session);
    session->name = copy_of(name);
    session->buffer = new_buffer(2000);
    return session;
}

__attribute__((noinline)) void close_session(struct session *session)
{
    free(session->buffer);
    free(session); /* the name is forgotten: this leaks */
}

__attribute__((noinline)) char *load_table(size_t bytes)
{
    char *table = malloc(bytes);
    memset(table, 1, bytes);
    return table;
}

__attribute__((noinline)) void serve(int requests)
{
    for (int i = 0; i < requests; i++) {
        close_session(open_session(i));
    }
}

int main(int count, char **words)
{
    char *table = load_table(8 << 20);
    serve(count > 1 ? atoi(words[1]) : 100000);
    if (count > 2) {
        puts("ready");
        fflush(stdout);
        for (;;) {
            serve(atoi(words[2]));
            usleep(1000);
        }
    }
    free(table);
    return 0;
}
