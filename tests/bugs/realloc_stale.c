/* Using the old pointer after realloc. */
#include <stdlib.h>

int main(void)
{
    int *numbers = calloc(4, sizeof *numbers);
    int *first = &numbers[0];
    numbers = realloc(numbers, 8 * sizeof *numbers);
    *first = 1; /* the block has moved */
    free(numbers);
    return 0;
}
