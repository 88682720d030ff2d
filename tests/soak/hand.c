#include "hand.h"

#include "random.h"

size_t hand_size(struct hand *hand)
{
    const size_t kind = random_below(&hand->random, 1000);
    const size_t most = kind < 600 ? 256 : kind < 900 ? 2048 : kind < 990 ? 32768 : kind < 999 ? 262144 : 1;
    return random_below(&hand->random, most) + (kind < 999);
}

bool hand_make(struct hand *hand, enum block_source source, size_t size, size_t alignment)
{
    struct block block;
    if (hand->ledger.count == LEDGER_MOST || !block_make(&block, source, size, alignment, &hand->random)) {
        return false;
    }
    ledger_put(&hand->ledger, &block);
    hand->made++;
    return true;
}

bool hand_make_any(struct hand *hand)
{
    const size_t dice = random_below(&hand->random, 16);
    const enum block_source source = dice < 12   ? BLOCK_MALLOC
                                     : dice < 14 ? BLOCK_CALLOC
                                     : dice < 15 ? BLOCK_REALLOC
                                                 : BLOCK_ALIGNED;
    const size_t alignment = (size_t)1 << random_below(&hand->random, 13);
    const size_t size = hand_size(hand);
    /* jemalloc 5.3 does not align blocks of 0 bytes. */
    return hand_make(hand, source, source == BLOCK_ALIGNED && size == 0 ? 1 : size, alignment);
}

void hand_free(struct hand *hand, size_t index)
{
    struct block block = ledger_take(&hand->ledger, index);
    block_free(&block);
}

void hand_free_all(struct hand *hand)
{
    while (hand->ledger.count > 0) {
        hand_free(hand, hand->ledger.count - 1);
    }
}

void hand_leave(struct hand *hand, size_t index)
{
    struct block block = ledger_take(&hand->ledger, index);
    if (hand->alone || !pool_give(&block)) {
        block_free(&block);
    }
}

void hand_free_others(struct hand *hand, size_t count)
{
    struct block block;
    uint64_t random = random_next(&hand->random); /* one number, whatever the pool has: the plan stays as it is */
    for (size_t i = 0; i < count && !hand->alone && pool_take(&block, &random); i++) {
        block_free(&block);
    }
}

void hand_churn(struct hand *hand, size_t operations)
{
    struct ledger *ledger = &hand->ledger;
    for (size_t i = 0; i < operations; i++) {
        const size_t dice = random_below(&hand->random, 32);
        const size_t index = ledger->count > 0 ? random_below(&hand->random, ledger->count) : 0;
        if (ledger->count == 0 || (dice < 15 && ledger->bytes < hand->share)) {
            (void)hand_make_any(hand);
        } else if (dice < 20) {
            const size_t size = hand_size(hand);
            (void)ledger_resize(ledger, index, size > 0 ? size : 1, &hand->random);
        } else if (dice == 20) {
            hand_leave(hand, index);
        } else if (dice == 21) {
            hand_free_others(hand, 1);
        } else {
            hand_free(hand, index);
        }
    }
}
