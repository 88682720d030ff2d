/* What was learned outlives the process, if HAKMEM_POLICY says where: loaded at its start, saved at its exit. */
#ifndef HAK_API_REMEMBER_H
#define HAK_API_REMEMBER_H

#include <stdbool.h>

struct policy_evidence;

/* Loads it. At the start, when all that must be known before the first heap is born is known. */
void remember_start(void);

/* Was something loaded? With what evidence? */
bool remember_has(struct policy_evidence *evidence);

#endif
