/*
 * What things cost, in nanoseconds, on the machine that this was measured on (AMD EPYC, Zen 3, in a virtual machine). Policies
 * are compared with each other, so only the ratios matter, and those are alike on machines of this kind. What a MiB held for a
 * second costs is not here: the mode says (policy.memory_price).
 *
 * Kernel: measured on 2026-11-21: first touch of a page 2.5 us, unmapping it 0.4, mmap with munmap 6.
 * Door: instructions counted by callgrind (docs/decisions/0028), at three a nanosecond.
 */
#ifndef HAK_LEARN_PRICES_H
#define HAK_LEARN_PRICES_H

enum { PRICED_PAGE_BYTES = 4096 };

enum price {
    PRICE_REFILL = 400,       /* of a magazine: some 25 blocks out of slabs */
    PRICE_NEW_SLAB = 300,     /* more, if it needs a new slab or an idle heap's */
    PRICE_FLUSHED_BLOCK = 40, /* out of a magazine, back into its slab */
    PRICE_REMOTE_BLOCK = 40,  /* each way: into a letter; out of it into a magazine or slab */
    PRICE_LETTER = 100,       /* one atomic exchange of a contended line, and a look at the inbox; not measured */
    PRICE_LARGE = 220,        /* request and free of a large block, from the BigCache and back */
    PRICE_UNITS = 1700,       /* a run of units from the span layer, and back */
    PRICE_CALL = 3000,        /* of the kernel, mmap and its kin: half a pair */
    PRICE_PURGED_PAGE = 400,
    PRICE_FAULT = 2500,       /* first touch of a page */
    PRICE_WAIT = 2000,        /* for a lock: spins, a call to sleep, one to wake; not measured */
    PRICE_EPOCH = 5000,       /* the learner's own work at an epoch's end */
};

#endif
