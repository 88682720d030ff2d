/*
 * malloc and free as the linker finds them, for the operators of C++ and for sized frees. If they are ours, which operator it
 * is, and what it knows of the block, goes along to the door; if another allocator's, it is called as anybody would.
 *
 * Operators are made of others: those of arrays of those of one, sized delete of plain delete, and so on ([new.delete]). A program
 * may bring only the latter, and is served by these: theirs are asked for before ours do by themselves what they would.
 *
 * The archive's two objects see each other's hidden names, and so would a program's: hence hak_.
 */
#ifndef HAK_OVERRIDE_LINKED_H
#define HAK_OVERRIDE_LINKED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "hakmem.h"

/* Of a sized delete that is told none. */
#define LINKED_SIZE_UNKNOWN ((size_t)-1)

/* Up to this alignment the operators that are told one are the plain ones. */
#define LINKED_PLAIN_ALIGNMENT (sizeof(void *))

#ifdef __cplusplus
extern "C" {
#endif

typedef void *linked_new_function(size_t size);
typedef void *linked_new_aligned_function(size_t size, size_t alignment);
typedef void linked_delete_function(void *p);
typedef void linked_delete_aligned_function(void *p, size_t alignment);

HIDDEN void *hak_linked_new(size_t size) HAK_NOTHROW;
HIDDEN void *hak_linked_new_array(size_t size) HAK_NOTHROW;

/* The same, but never NULL: without memory they call the new handler, or throw. */
HIDDEN void *hak_linked_new_or_throw(size_t size);
HIDDEN void *hak_linked_new_array_or_throw(size_t size);

HIDDEN void *hak_linked_new_aligned(size_t alignment, size_t size) HAK_NOTHROW;
HIDDEN void *hak_linked_new_array_aligned(size_t alignment, size_t size) HAK_NOTHROW;

HIDDEN void hak_linked_delete(void *p) HAK_NOTHROW;
HIDDEN void hak_linked_delete_array(void *p) HAK_NOTHROW;
HIDDEN void hak_linked_delete_sized(void *p, size_t size) HAK_NOTHROW;
HIDDEN void hak_linked_delete_array_sized(void *p, size_t size) HAK_NOTHROW;
HIDDEN void hak_linked_delete_aligned(void *p, size_t alignment) HAK_NOTHROW;
HIDDEN void hak_linked_delete_aligned_sized(void *p, size_t alignment, size_t size) HAK_NOTHROW;
HIDDEN void hak_linked_delete_array_aligned(void *p, size_t alignment) HAK_NOTHROW;
HIDDEN void hak_linked_delete_array_aligned_sized(void *p, size_t alignment, size_t size) HAK_NOTHROW;
HIDDEN void linked_free_sized(void *p, size_t size) HAK_NOTHROW;

/* Of operators/, which a program that is linked with the archive and asks for no operator leaves out. What a new that throws does
 * without memory; and what operators are made of, if it is the program's, or NULL, if it is ours. `array`: new[] or, if that is ours,
 * new; else new. */
HIDDEN WEAK void *hak_linked_new_without_memory(size_t size);
HIDDEN WEAK void *hak_linked_new_array_without_memory(size_t size);
HIDDEN WEAK linked_new_function *hak_linked_others_new(bool array);
HIDDEN WEAK linked_new_aligned_function *hak_linked_others_new_aligned(bool array);
HIDDEN WEAK linked_delete_function *hak_linked_others_delete(bool array);
HIDDEN WEAK linked_delete_aligned_function *hak_linked_others_delete_aligned(bool array);

#ifdef __cplusplus
}
#endif

#endif
