/* Intrusive doubly linked lists. A zeroed head is an empty list, so that heads in fresh memory need no
 * set-up (and no page is touched for a list that is never used). */
#ifndef HAK_BASE_LIST_H
#define HAK_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list_node {
    struct list_node *next;
    struct list_node *prev;
};

struct list {
    struct list_node *first;
    struct list_node *last;
};

/* The structure of type `type` that holds `node` as its member `member`. */
#define LIST_ENTRY(node, type, member) ((type *)((char *)(node) - offsetof(type, member)))

static inline void list_push_front(struct list *list, struct list_node *node)
{
    node->prev = NULL;
    node->next = list->first;
    if (list->first != NULL)
        list->first->prev = node;
    else
        list->last = node;
    list->first = node;
}

static inline void list_push_back(struct list *list, struct list_node *node)
{
    node->next = NULL;
    node->prev = list->last;
    if (list->last != NULL)
        list->last->next = node;
    else
        list->first = node;
    list->last = node;
}

static inline void list_remove(struct list *list, struct list_node *node)
{
    if (node->prev != NULL)
        node->prev->next = node->next;
    else
        list->first = node->next;
    if (node->next != NULL)
        node->next->prev = node->prev;
    else
        list->last = node->prev;
}

#endif
