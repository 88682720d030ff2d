/* Following a pointer out of a block that was freed. */
#include <stdio.h>
#include <stdlib.h>

struct node {
    struct node *next;
    int value;
};

int main(void)
{
    struct node *list = NULL;
    for (int i = 0; i < 3; i++) {
        struct node *node = malloc(sizeof *node);
        *node = (struct node){list, i};
        list = node;
    }
    for (struct node *node = list; node != NULL; node = node->next)
        free(node); /* and node->next is read from it */
    return 0;
}
