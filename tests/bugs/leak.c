/* Losing the last pointer to a block. */
#include <stdlib.h>

struct list {
    struct list *next;
    char *text;
};

static struct list *make_list(void)
{
    struct list *list = calloc(1, sizeof *list);
    list->text = calloc(1, 50);
    return list;
}

static void forget(void)
{
    for (int i = 0; i < 3; i++)
        (void)make_list();
}

static void use_the_stack(void)
{
    volatile char bytes[1000];
    for (int i = 0; i < 1000; i++)
        bytes[i] = 0;
}

int main(void)
{
    forget();
    use_the_stack();
    return 0;
}
