/*
 * Large blocks of the hardened library. Nothing may touch the pages behind one, nor itself from when it is freed until its
 * units are given back. From its end to the end of its last page it reads as zero.
 */
#ifndef HAK_LARGE_FENCED_H
#define HAK_LARGE_FENCED_H

#include <stdbool.h>
#include <stddef.h>

#include "large/large.h"

/* Makes an end of a new block's, of block->bytes, which reads as zero from then on; `zero` if it does already. */
void fenced_begin(struct large *block, bool zero);

/* Has the memory from its end to the end of its page changed? */
bool fenced_is_overrun(const struct large *block);

/* A block that stays within its last page becomes one of `bytes`. False: it does not. */
bool fenced_resize(struct large *block, size_t bytes);

/* The block was freed: its content is gone. */
void fenced_close(struct large *block);

/* Its units are to be given back. *zero: they read as zero. False: they must be abandoned. */
bool fenced_end(struct large *block, bool *zero);

#endif
