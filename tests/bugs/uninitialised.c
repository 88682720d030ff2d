/* Following a pointer that was never written. */
#include <stdio.h>
#include <stdlib.h>

struct person {
    char *name;
    int age;
};

int main(void)
{
    struct person *person = malloc(sizeof *person);
    person->age = 30;
    printf("%c is %d\n", person->name[0], person->age);
    free(person);
    return 0;
}
