/* Calls nothing but what compilers know: those that optimize whole programs do not tell the linker of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words)
{
    char *block = malloc((size_t)count * 100);
    if (block == NULL)
        return 1;
    strcpy(block, words[0]);
    int same = strcmp(block, words[0]) == 0;
    free(block);
    puts(same ? "done" : "another content");
    return !same;
}
