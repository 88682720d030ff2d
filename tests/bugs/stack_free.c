/* Freeing what is not a block. */
#include <stdlib.h>

static void release(char *text)
{
    free(text);
}

int main(void)
{
    char text[100] = "on the stack";
    release(text);
    return 0;
}
