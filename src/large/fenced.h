/*
 * Large blocks of the hardened library. Nothing may touch the pages behind one. What was freed reads as zero; of 128 KiB and
 * more nothing may touch it either, and what is smaller is verified when it is lent again, until then a pointer to it
 * reads zeros. From its end to where it may be touched a block reads as zero.
 */
#ifndef HAK_LARGE_FENCED_H
#define HAK_LARGE_FENCED_H

#include <stdbool.h>
#include <stddef.h>

#include "large/large.h"

/* Makes an end of a new block's, of block->bytes, which reads as zero from then on; `zero` if it does already. */
void fenced_begin(struct large *block, bool zero);

/* The same of one that was kept. Ends the process if somebody has written to it. False: the kernel refuses, and the block is as
 * before. */
bool fenced_lend(struct large *block);

/* Has the memory behind its end changed? */
bool fenced_is_overrun(const struct large *block);

/* A block that stays within what may be touched, and fills most of it, becomes one of `bytes`. False: it does not. */
bool fenced_resize(struct large *block, size_t bytes);

/* The block was freed: its content is gone. If it is kept, its pages stay. */
void fenced_close(struct large *block, bool kept);

/* Its units are to be given back. *zero: they read as zero. Returns the bytes of those that can be used; the others, behind them, must be
 * abandoned. */
size_t fenced_end(struct large *block, bool *zero);

#endif
