/*
 * Limits on what the process holds, and the account of it: bytes of units in runs, or free and still written, and of
 * committed metadata. That is an upper bound of what is resident here (less the tables of the arena, 1/480 more).
 *
 * A run beyond the hard limit is refused. One beyond the soft limit is granted, and limit_pressed says so: whoever took
 * it sees to it, before the program gets the memory, that what can be given back is (heap/relief.h). For the soft limit
 * pages that have no memory do not count (heap/absent.h): they are summed up when the bound passes it. For the hard limit
 * they do: they get memory when they are touched, and nobody is asked.
 *
 * What is charged is one word that all shards (shards.h) add to; the first group is for who holds the lock of one. Everything
 * else is guarded by the pool's. The limits themselves are values of the policy.
 */
#ifndef HAK_SPAN_LIMIT_H
#define HAK_SPAN_LIMIT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/atomic.h"

struct span_shard;

/* May units hold so many bytes more? A moment old. */
bool limit_allows(size_t bytes);

/* Bytes of units that are held now: more, or less. False: they would be beyond the hard limit, and are not. */
bool limit_charge(struct span_shard *shard, size_t bytes);
void limit_discharge(size_t bytes);

/* How many are. */
extern HIDDEN size_t limit_bytes;

/* In the child of a fork: what other threads were about is over. */
void limit_after_fork(void);

/* The functions below take the lock. Their callers are inside the door, where a signal handler that allocates knows that
 * it may have interrupted the holder of a lock; limit_end_notice, which takes none, is called outside. */

/* Sets both limits, bytes, hard not below soft; SIZE_MAX: none. */
void limit_set(size_t soft, size_t hard);

/* Has that been done? What else sets them, the control group and the environment, does not count. Takes no lock. */
bool limit_is_set(void);

/* Is there a hard one? */
bool limit_is_hard(void);

/* Bytes that count for the hard limit. */
size_t limit_held(void);

/* Pages that had no memory get some. Takes no lock. */
void limit_note_filled(size_t bytes);

/* Would a request of so many bytes pass the hard limit, perhaps, but not on its own? Then giving back helps. */
bool limit_is_short_of(size_t bytes);

/* The pages of a run move to another: between the two, its bytes do not count. The number is for limit_end_move. */
unsigned limit_begin_move(size_t bytes);
void limit_end_move(unsigned number, size_t bytes);

/* Before that the caller charges the other run: until limit_repay its own charges may pass the limits by so many bytes. They take no
 * lock. False: another thread has borrowed; then there must be room for both runs for a moment. */
bool limit_borrow(size_t bytes);
void limit_repay(void);

/* Has the soft limit been passed, since it was last looked at, by enough to look again? */
extern HIDDEN bool limit_pressed;

ALWAYS_INLINE bool limit_presses(void)
{
    return load_relaxed(&limit_pressed);
}

/* Is the soft limit not known yet, and nobody else about to find out? Then the caller does, and says what the limit of
 * the control group is, of which the soft limit is 7/8; SIZE_MAX: none; 0: it cannot be
 * read now, and the question comes again when 8 MiB more are charged. */
bool limit_begin_learning(void);
void limit_learn(size_t group_limit);

/* Takes the pressure off: the caller gives back what can be, if the soft limit is passed indeed. `absent`: so many bytes
 * have no memory. */
bool limit_begin_relief(size_t absent);

/* Is it passed still, after that? And is it time for what takes memory from threads that may run: the program would be told
 * else, or has not paid for it for a while. `absent` as above. */
bool limit_begin_hard_relief(size_t absent);

/* Who is told when the soft limit is passed. */
struct limit_listener {
    void (*callback)(size_t held, size_t limit, void *data); /* NULL: nobody */
    void *data;
};

void limit_set_listener(struct limit_listener listener);

struct limit_notice {
    struct limit_listener listener;
    size_t held;
    size_t limit;
};

/* Is the listener to be told now? Then the caller calls it, with no lock held, and ends. `absent` as above. */
bool limit_begin_notice(struct limit_notice *notice, size_t absent);
void limit_end_notice(void);

/* The calling thread ends, perhaps in its listener. Takes no lock. */
void limit_end_own_notice(void);

#endif
