/* include/hakmem.h: the system refuses memory, now and then or for long, and limits are set: NULL and ENOMEM are answers, and
 * nothing else suffers. */
#include "blocks.h"
#include "check.h"
#include "fake_os.h"
#include "hakmem.h"

#define LIMIT_MOST ((size_t)64 << 20)

/* Not what tells threads and heaps apart. */
static const unsigned refused = FAKE_RESERVE | FAKE_COMMIT | FAKE_PURGE | FAKE_RENEW | FAKE_REFILL_HOLE | FAKE_MOVE |
                                FAKE_BARRIER | FAKE_CAN_MOVE;

static void refuse(struct blocks *blocks, struct shadow **held, struct input *input)
{
    size_t soft;
    size_t hard;
    (void)held;
    switch (input_below(input, 4)) {
    case 0:
        fake_os_refuse_some(refused & (unsigned)input_number(input, 2), 1 + input_below(input, 8), input_number(input, 2));
        blocks->may_fail = true;
        break;
    case 1:
        fake_os_refuse(refused & (unsigned)input_number(input, 2), 1 + input_below(input, 32), 1 + input_below(input, 32));
        blocks->may_fail = true;
        break;
    case 2:
        soft = input_below(input, LIMIT_MOST);
        hard = input_below(input, LIMIT_MOST);
        CHECK((hak_set_limit(soft, hard) == 0) == (hard == 0 || hard >= soft));
        blocks->may_fail = true;
        break;
    default:
        fake_os_obey();
    }
}

/* What was refused has left nothing behind: there is memory again. */
static void check_recovery(void)
{
    void *block = hak_malloc(LIMIT_MOST);
    CHECK(block != NULL);
    hak_free(block);
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count;
    (void)arguments;
    blocks_start();
    fake_clock_set(1);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct blocks blocks;
    struct input input = {data, data + size};
    blocks_init(&blocks, 1);
    blocks.more = refuse;
    blocks_play(&blocks, &input);
    fake_os_obey();
    CHECK(hak_set_limit(0, 0) == 0);
    blocks_free_all(&blocks);
    check_recovery();
    (void)hak_purge(HAK_PURGE_CACHED);
    return 0;
}
