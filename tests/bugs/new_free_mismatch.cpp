/* new[] and free: a warning, the program goes on. */
#include <cstdlib>

int main()
{
    int *numbers = new int[10];
    free(numbers);
    return 0;
}
