/* realloc of a block that was freed. */
#include <stdlib.h>

int main(void)
{
    char *text = malloc(20);
    free(text);
    text = realloc(text, 40);
    free(text);
    return 0;
}
