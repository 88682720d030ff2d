/*
 * The lines of sites in a saved policy (policy_text.h), of those whose blocks are kept in another way than others:
 *
 *   site 0x501c8feecb3c66c5 keep 4       4 times as long as others of their size; 0: not at all. 1, 2, 4 or 8 times
 */
#ifndef HAK_LEARN_SITE_LINES_H
#define HAK_LEARN_SITE_LINES_H

#include "learn/policy_text.h"

bool site_lines_read(struct policy_line *line, bool apply);
void site_lines_write(struct out *out);

#endif
