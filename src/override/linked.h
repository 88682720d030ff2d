/*
 * malloc and free as the linker finds them, for the operators of C++ and for sized frees. If they are ours, which operator it
 * is, and what it knows of the block, goes along to the door; if another allocator's, it is called as anybody would.
 */
#ifndef HAK_OVERRIDE_LINKED_H
#define HAK_OVERRIDE_LINKED_H

#include <stddef.h>

#include "base/compiler.h"
#include "hakmem.h"

#ifdef __cplusplus
extern "C" {
#endif

HIDDEN void *linked_new(size_t size) HAK_NOTHROW;
HIDDEN void *linked_new_array(size_t size) HAK_NOTHROW;

/* The same, but never NULL: without memory they call the new handler, or throw. */
HIDDEN void *linked_new_or_throw(size_t size);
HIDDEN void *linked_new_array_or_throw(size_t size);

HIDDEN void *linked_new_aligned(size_t alignment, size_t size) HAK_NOTHROW;
HIDDEN void *linked_new_array_aligned(size_t alignment, size_t size) HAK_NOTHROW;

HIDDEN void linked_delete(void *p) HAK_NOTHROW;
HIDDEN void linked_delete_array(void *p) HAK_NOTHROW;
HIDDEN void linked_delete_sized(void *p, size_t size) HAK_NOTHROW;
HIDDEN void linked_delete_array_sized(void *p, size_t size) HAK_NOTHROW;
HIDDEN void linked_free_sized(void *p, size_t size) HAK_NOTHROW;

/* Of operators.cpp: what a new that throws does without memory. */
HIDDEN void *operators_new_without_memory(size_t size);
HIDDEN void *operators_new_array_without_memory(size_t size);

#ifdef __cplusplus
}
#endif

#endif
