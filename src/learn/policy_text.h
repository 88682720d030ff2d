/*
 * What was learned, as a text that people read, edit and check in:
 *
 *   hakmem-policy 1
 *   program /usr/bin/redis-server        one part for each program, as it ends with "end"
 *   build-id 5f1c…                       or, where there is none: size BYTES-OF-THE-FILE
 *   epochs 412                           the evidence: epochs, seconds, and the part of the cost that was saved, in millionths
 *   seconds 97
 *   saved 43000
 *   knob bigcache_ms[5] 4000             one of knobs.h; without an index all of its values
 *   site 0x501c8feecb3c66c5 keep 4       a place in the program (site_lines.h)
 *   end
 *
 * "#" begins a comment, but not in a program's path. What is between "seconds" and "end" is of the table of sections. A text is
 * either sound as a whole or not used at all: every line, of other programs' parts too.
 *
 * Reading is a pure function of the text.
 */
#ifndef HAK_LEARN_POLICY_TEXT_H
#define HAK_LEARN_POLICY_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "os/out.h"

/* A program: the same if the build id is the same, or, where there is none, path and size. */
struct policy_key {
    const char *path;
    const char *build_id; /* in hexadecimal, or "" */
    uint64_t bytes;
};

struct policy_evidence {
    uint64_t epochs;
    uint64_t seconds;
    uint64_t saved; /* of the cost, in millionths */
};

enum policy_is {
    POLICY_THERE,
    POLICY_NOT_THERE,
    POLICY_OF_OTHER_BUILD, /* of a program of the same path */
    POLICY_DAMAGED,
};

/* What a text says of one program. */
struct policy_found {
    enum policy_is is;
    size_t begin; /* of its part, or of the other build's, in the text; not there: both are the text's length */
    size_t end;
    struct policy_evidence evidence;
    unsigned line; /* damaged: where, and what is wrong there */
    char what[160];
};

void policy_text_read(const char *text, size_t length, const struct policy_key *key, struct policy_found *found);

/* Puts what was found into force. Only if it is there. */
void policy_text_apply(const char *text, const struct policy_found *found);

/* The first line of a text. */
void policy_text_begin(struct out *out);

/* The part of a program: what is in force, and of the part that was there before, in `text`, what this process could not load.
 * NULL: there was none. */
void policy_text_write(struct out *out, const struct policy_key *key, const struct policy_evidence *evidence, const char *text,
                       const struct policy_found *before);

/* A line's words, one after another. */
struct policy_line {
    const char *at;
    const char *end;
    struct policy_found *found; /* for what is wrong */
};

struct policy_word {
    const char *at;
    const char *end; /* == at: there are no more */
};

struct policy_word policy_next_word(struct policy_line *line);

/* Says what is wrong with the line; false. */
bool policy_line_is_wrong(const struct policy_line *line, const char *format, ...) PRINTF_LIKE(2, 3);

/* The next word is a number up to `most`; false, and says so, if not. */
bool policy_next_number(struct policy_line *line, const char *name, uint64_t most, uint64_t *out);

/* One kind of what is learned. */
struct policy_section {
    const char *word;  /* with which its lines begin */
    bool (*read)(struct policy_line *rest, bool apply); /* false: damaged. First all lines are read, then applied */
    void (*write)(struct out *out);
    bool (*stays)(struct policy_line rest); /* says what this process could not load: not its to drop. NULL: no line does */
};

/* The last has no word. */
extern HIDDEN const struct policy_section policy_sections[];

#endif
