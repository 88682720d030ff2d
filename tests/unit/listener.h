/* Who is told of the soft limit, in tests: a callback that counts, and what others count with. */
#ifndef HAK_TEST_LISTENER_H
#define HAK_TEST_LISTENER_H

#include <stddef.h>

/* Sets the callback; &listener_calls is its data. */
void listener_set(void (*callback)(size_t held, size_t limit, void *data));

/* Such a callback: checks that all that can be given back has been, counts its calls and notes the last. */
void listener_count(size_t held, size_t limit, void *data);

extern size_t listener_calls;
extern size_t listener_last_held;
extern size_t listener_last_limit;

#endif
