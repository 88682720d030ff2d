/*
 * Class fit: size classes for what a program asks for most, opened where it saves memory and closed where it no longer does
 * (docs/decisions/0029-classes-that-fit.md). What is known comes from refills (fit_sizes.h) and from the heaps' counts; what
 * follows from it is chosen in fit_choice.h; heap/classes.h does it.
 *
 * Not in the hardened library. Any thread, behind the door, no lock held. Of threads that come at once one does it, and the
 * others go on.
 */
#ifndef HAK_LEARN_FIT_H
#define HAK_LEARN_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap;

/* Are classes fitted though nothing else learns? So it is once a heap has had policy.fit_bytes in slabs, unless the user has said what
 * the learner does, or the mode does without. At the heartbeat of the heap's owner. */
bool fit_is_alone(const struct heap *heap);

/* Has refills counted, or no longer, as the policy says. At the start, and whenever that changes; fit_epoch does it too. */
void fit_follow_policy(void);

/* Opens and closes what is worth it by now; in observe mode, notes what it would open. Decisions say `now_ms`. */
void fit_epoch(uint64_t now_ms);

/* At each heartbeat while classes are fitted: calls fit_epoch, if it is time. At the first of them it is: what a program allocates at
 * its start it often keeps. */
void fit_at_heartbeat(uint64_t now_ms);

/* Opens the class that an earlier run has found worth it, with so many refills behind it. False: there can be none of this size,
 * somebody else is here just now, or the allocator has not started (door_open). */
bool fit_preset(size_t size, uint64_t evidence);

/* Has this process, not who has forked it, opened a class by itself? */
bool fit_has_opened(void);

/* This process has just been forked. */
void fit_forked(void);

/* Calls `tell` with the size of each open class, and the refills behind it. */
void fit_each(void (*tell)(size_t size, uint64_t evidence, void *argument), void *argument);

#endif
