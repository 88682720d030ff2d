/* Reading a large block that was freed. */
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    char *picture = calloc(1024, 1024);
    free(picture);
    printf("%d\n", picture[5000]); /* its pages are closed: this faults */
    return 0;
}
