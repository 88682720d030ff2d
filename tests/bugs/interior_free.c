/* Freeing a pointer into a block. */
#include <stdlib.h>
#include <string.h>

int main(void)
{
    char *line = strdup("  indented");
    while (*line == ' ')
        line++;
    free(line);
    return 0;
}
