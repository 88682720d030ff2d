/* The file in which the learned policy is kept from one run to the next (learn/policy_text.h is its form). */
#ifndef HAK_LEARN_POLICY_FILE_H
#define HAK_LEARN_POLICY_FILE_H

#include <stdbool.h>

#include "learn/policy_text.h"

/* Puts what the file says of this program into force, and tells the evidence behind it. What cannot be used gets one line of
 * warning, and nothing of it is used; that there is no such file only if `must_be`. A file that has nothing of this program is
 * fine: its children's. Behind the door, before there are
 * threads. False: nothing was loaded. */
bool policy_file_load(const char *path, bool must_be, struct policy_evidence *evidence);

/* Writes what is in force, in place of what the file said of this program; what it says of others stays. The file changes at
 * once, or not at all; a damaged one is left alone, with a line of warning. Nothing is written if the file has more evidence by
 * now: of another process of the program. Processes that do so at once do it one after the other. Takes memory from the system
 * for the time being, none from the heap. */
void policy_file_save(const char *path, const struct policy_evidence *evidence);

#endif
