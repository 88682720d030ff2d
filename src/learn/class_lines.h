/* Lines of a saved policy: "class SIZE evidence REFILLS", of size classes that were opened for the program. */
#ifndef HAK_LEARN_CLASS_LINES_H
#define HAK_LEARN_CLASS_LINES_H

#include "learn/policy_text.h"

/* See struct policy_section. */
bool class_lines_read(struct policy_line *line, bool apply);
void class_lines_write(struct out *out);
bool class_lines_stay(struct policy_line line);

#endif
