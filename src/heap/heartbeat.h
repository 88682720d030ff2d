/* What a heap does now and then, by requested bytes (budget.h). */
#ifndef HAK_HEAP_HEARTBEAT_H
#define HAK_HEAP_HEARTBEAT_H

#include "heap/heap.h"

/* Grants the next budget; posts and collects mail, audits one magazine, trims one that idles, cleans an idle
 * heap, and gives back what has been free for long. Owner inside the door. */
void heartbeat(struct heap *heap);

#endif
