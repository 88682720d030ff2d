#include "more_phases.h"

#include "family.h"
#include "public.h"
#include "random.h"
#include "where.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LARGE_LEAST = 32 << 10, LARGE_MOST = 16 << 20, CHILD_SECONDS = 120, CHILDS_BLOCKS = 200, SHORT_BLOCKS = 400 };

static size_t large_size(uint64_t *random)
{
    const size_t size = (size_t)LARGE_LEAST << random_below(random, 10);
    return size < LARGE_MOST ? size + random_below(random, size) : LARGE_MOST;
}

/* Up to four times as much, or down to a quarter. */
static size_t large_resized(size_t size, uint64_t *random)
{
    const size_t wanted = size / 4 + random_below(random, random_below(random, 2) == 0 ? size : 4 * size);
    return wanted < LARGE_LEAST ? LARGE_LEAST : wanted > LARGE_MOST ? LARGE_MOST : wanted;
}

void phase_large(struct hand *hand)
{
    uint64_t *random = &hand->random;
    struct ledger *ledger = &hand->ledger;
    const size_t before = ledger->count;
    const size_t before_bytes = ledger->bytes;
    for (size_t i = 0; i < hand->work / 100; i++) {
        const size_t own = ledger->count - before;
        const bool room = ledger->bytes - before_bytes < hand->large_share;
        const size_t index = before + (own > 0 ? random_below(random, own) : 0);
        const size_t dice = random_below(random, 4);
        if (own == 0 || (room && dice < 2)) {
            (void)hand_make(hand, (enum block_source)random_below(random, 4), large_size(random),
                            (size_t)1 << random_below(random, 17));
        } else if (room && dice == 2) {
            (void)ledger_resize(ledger, index, large_resized(ledger->blocks[index].size, random), random);
        } else {
            hand_free(hand, index);
        }
    }
    while (ledger->count > before) {
        hand_free(hand, ledger->count - 1);
    }
}

void phase_purge(struct hand *hand)
{
    uint64_t *random = &hand->random;
    for (size_t i = 0; i < 20; i++) {
        hand_churn(hand, random_below(random, 200));
        const size_t dice = random_below(random, 4);
        if (dice < 2) {
            public_purge(dice == 0);
        } else if (dice == 2) {
            public_trim();
        } else {
            public_prewarm(hand_size(hand), random_below(random, 200));
        }
    }
}

/* The hard limit stays the round's: without one no request may fail. */
static void switch_limit(struct hand *hand)
{
    const size_t soft = (size_t)1 << (22 + random_below(&hand->random, 6));
    if (public_may_set_limits()) {
        public_set_limit(hand->hard_bytes != 0 && soft > hand->hard_bytes ? hand->hard_bytes : soft, hand->hard_bytes);
    }
}

static void switch_mode(struct hand *hand)
{
    static const char *const modes[] = {"minimal", "fast", "balanced", "learning"};
    const char *mode = modes[random_below(&hand->random, sizeof modes / sizeof modes[0])];
    if (public_may_set_mode()) {
        public_set_mode(mode);
    }
}

void phase_switch(struct hand *hand)
{
    for (size_t i = 0; i < 20; i++) {
        hand_churn(hand, random_below(&hand->random, 500));
        if (random_below(&hand->random, 2) == 0) {
            switch_limit(hand);
        } else {
            switch_mode(hand);
        }
    }
}

/* What a short thread is told, and how many blocks it made. */
struct short_life {
    pthread_t id;
    struct hand hand;
};

static void *live_shortly(void *argument)
{
    struct short_life *life = argument;
    struct hand *hand = &life->hand;
    where_set(hand->round, "short thread", hand->thread);
    hand_churn(hand, random_below(&hand->random, SHORT_BLOCKS));
    while (hand->ledger.count > 0) {
        hand_leave(hand, hand->ledger.count - 1);
    }
    return NULL;
}

/* Two at a time. The ledgers are the second half of this thread's own, whose first half stays as it is. */
void phase_threads(struct hand *hand)
{
    enum { AT_ONCE = 2, SECOND_HALF = LEDGER_MOST / 2 };
    if (hand->ledger.count > SECOND_HALF) {
        hand_churn(hand, hand->work / 4);
        return;
    }
    for (size_t i = 0; i < 2 + hand->work / 4000; i++) {
        struct short_life lives[AT_ONCE];
        size_t started = 0;
        for (; started < AT_ONCE; started++) {
            struct short_life *life = &lives[started];
            life->hand = *hand;
            life->hand.made = 0;
            life->hand.random = random_next(&hand->random);
            life->hand.ledger = (struct ledger){.blocks = &hand->ledger.blocks[SECOND_HALF + started * SHORT_BLOCKS]};
            const int error = pthread_create(&life->id, NULL, live_shortly, life);
            if (error != 0 && !(error == EAGAIN && block_failure_allowed())) {
                failed(NULL, "pthread_create gave %d", error);
            }
            if (error != 0) {
                break;
            }
        }
        for (size_t j = 0; j < started; j++) {
            pthread_join(lives[j].id, NULL);
            hand->made += lives[j].hand.made;
        }
        hand_free_others(hand, random_below(&hand->random, 2 * SHORT_BLOCKS));
    }
}

/* In the child: some of the parent's blocks, then its own. */
static void live_as_child(struct hand *hand)
{
    alarm(CHILD_SECONDS);
    where_set(hand->round, "fork's child", hand->thread);
    hand->alone = true;
    for (size_t i = 0; i < CHILDS_BLOCKS && hand->ledger.count > 0; i++) {
        hand_free(hand, random_below(&hand->random, hand->ledger.count));
    }
    hand_churn(hand, hand->work / 50);
    public_purge(true);
    for (size_t i = 0; i < CHILDS_BLOCKS && hand->ledger.count > 0; i++) {
        hand_free(hand, random_below(&hand->random, hand->ledger.count));
    }
    _exit(0);
}

void phase_fork(struct hand *hand)
{
    for (size_t i = 1 + random_below(&hand->random, 3); i > 0; i--) {
        const pid_t child = fork();
        if (child == 0) {
            live_as_child(hand);
        }
        if (child < 0 && !(errno == ENOMEM && block_failure_allowed())) {
            failed(NULL, "fork gave errno %d", errno);
        }
        hand_churn(hand, hand->work / 50);
        int status = 0;
        if (child > 0 && waitpid(child, &status, 0) != child) {
            failed(NULL, "waitpid gave errno %d", errno);
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == 1) {
            _exit(1); /* the child has told why */
        }
        if (status != 0) {
            failed(NULL, "a child ended with status %#x", (unsigned)status);
        }
    }
}
