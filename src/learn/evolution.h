/*
 * Evolution: which change of a policy is worth a try. What might be won is estimated from where the cost of the last epochs
 * lies; which of the promising ones is tried is left to chance, in proportion. Deterministic: chance is the caller's word.
 */
#ifndef HAK_LEARN_EVOLUTION_H
#define HAK_LEARN_EVOLUTION_H

#include "learn/arms.h"
#include "learn/epoch.h"

struct prospect {
    uint32_t knob;  /* enum knob */
    uint32_t index;
    bool up;        /* doubled, or one more; else halved, or one less. Times: by four */
    double worth;   /* what it might save, as a share of all cost: an estimate from counts */
    uint64_t classes; /* a bit for each size class whose value changes, of which `index` is one; 0: only that of `index` */
};

enum { PROSPECTS_MOST = 64, TRIED_MOST = 32 };

/* What has been tried in vain lately. Zeroed: nothing. */
struct tried {
    uint32_t count; /* of all that was ever noted; the last TRIED_MOST are known */
    struct prospect what[TRIED_MOST];
};

void tried_note(struct tried *tried, const struct prospect *what);

/* Not if it promises twice as much by now. */
bool tried_has(const struct tried *tried, const struct prospect *what);

/* The value after a step up or down; the same if there is none. */
uint64_t evolution_step(enum knob knob, uint64_t value, bool up);

/* Is there one more step in the direction of the last change of `arm`, and does it show within `delay_ms`? */
bool evolution_goes_on(const struct arm *arm, const struct prospect *last, uint64_t delay_ms);

/* All changes of `arm` that promise anything, where the cost is as in `seen`, and that show within `delay_ms`. `parts`: enum
 * learn_part. Returns how many. */
unsigned evolution_prospects(struct prospect to[PROSPECTS_MOST], const struct arm *arm, const struct epoch *seen,
                             unsigned parts, uint64_t delay_ms);

/* One of them that was not tried, by chance, in proportion to what it is worth. NULL: there is none. */
const struct prospect *evolution_choose(const struct prospect *prospects, unsigned count, const struct tried *tried,
                                        uint64_t *random);

/* Makes `child` of the parent by this change; where magazines of many classes become wider, all of a thread's may hold as much as
 * they then want. */
void evolution_make(struct arm *child, const struct arm *parent, const struct prospect *prospect);

/* The arms that compete where evolution is switched off. False: there is no arm of this number. */
bool evolution_preset(struct arm *arm, unsigned number, unsigned parts);

#endif
