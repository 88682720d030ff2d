/* Freeing a block twice. */
#include <stdlib.h>

static char *buffer;

static void close_file(void)
{
    free(buffer);
}

int main(void)
{
    buffer = malloc(100);
    close_file();
    char *other = malloc(100);
    close_file();
    free(other);
    return 0;
}
