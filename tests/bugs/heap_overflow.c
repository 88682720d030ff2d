/* Writing behind the end of a block. */
#include <stdlib.h>
#include <string.h>

int main(void)
{
    const char *name = "hakmem";
    char *copy = malloc(strlen(name)); /* no room for the ending zero */
    strcpy(copy, name);
    free(copy);
    return 0;
}
