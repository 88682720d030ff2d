/*
 * Blocks for tests at the limits: lists of them, each block a node that holds a pattern, and fragments. Nodes of
 * different lists may be used by different threads.
 */
#ifndef HAK_TEST_NODES_H
#define HAK_TEST_NODES_H

#include <stddef.h>

/* The start of a block. */
struct node {
    struct node *next;
    size_t bytes; /* of the block */
};

/* Puts a block in front of a list, NULL if empty, and fills it; returns the list. */
struct node *nodes_add(struct node *list, struct node *node, size_t bytes);

/* Adds blocks of `bytes` until `total` are had; none may be refused. */
struct node *nodes_take(struct node *list, size_t bytes, size_t total);

/* Adds blocks of `bytes` until one is refused; the hard limit holds meanwhile. */
struct node *nodes_exhaust(struct node *list, size_t bytes);

/* Verifies every block. */
void nodes_check(const struct node *list);

/* Verifies and frees every block. */
void nodes_free(struct node *list);

/* Leaves 8 MiB of written memory, the only one, in pieces of 512 KiB between blocks that stay. No BigCache from now
 * on. */
void leave_fragments(void);

#endif
