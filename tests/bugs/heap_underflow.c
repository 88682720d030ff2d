/* Writing before the start of a block. */
#include <stdlib.h>

int main(void)
{
    int *numbers = malloc(10 * sizeof *numbers);
    for (int i = 10; i >= 0; i--)
        numbers[i - 1] = i; /* from numbers[9] down to numbers[-1] */
    free(numbers);
    return 0;
}
