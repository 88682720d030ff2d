#include "heap/delay.h"

#include "base/atomic.h"
#include "base/bits.h"
#include "heap/heap.h"
#include "heap/magazine.h"
#include "os/os.h"

/* Blocks of a class that may wait hold at most so many bytes; but two may, whatever their size. */
enum { BYTES_MOST = 16 * 1024, LEAST = 2 };

/* A handler that comes between repeats a number. */
static uint64_t next_random(struct delay *delay)
{
    uint64_t x = delay->random;
    if (UNLIKELY(x == 0))
        x = os_random() | 1;
    x = next_xorshift(x);
    delay->random = x;
    return x * 0x2545f4914f6cdd1du >> 32;
}

/* Below `limit`, which is small. */
static unsigned chance(struct delay *delay, unsigned limit)
{
    return (unsigned)(next_random(delay) * limit >> 32);
}

static unsigned slots_of(unsigned class)
{
    uint32_t size = size_classes[class].size;
    return size <= BYTES_MOST / DELAY_SLOTS ? DELAY_SLOTS : (unsigned)max_size(BYTES_MOST / size, LEAST);
}

void *delay_exchange(struct heap *heap, unsigned class, void *p)
{
    if (heap->delay == NULL)
        return p;
    void **slot = &heap->delay->slot[class][chance(heap->delay, slots_of(class))];
    return __atomic_exchange_n(slot, p, __ATOMIC_ACQ_REL);
}

void delay_empty(struct heap *heap)
{
    for (unsigned class = 0; heap->delay != NULL && class < SIZE_CLASSES; class++) {
        for (unsigned i = 0; i < DELAY_SLOTS; i++) {
            void *p = __atomic_exchange_n(&heap->delay->slot[class][i], NULL, __ATOMIC_ACQ_REL);
            if (p != NULL && !magazine_give_back(heap, class, p))
                heap->delay->slot[class][i] = p;
        }
    }
}

void delay_shuffle(struct heap *heap, void **slots, unsigned count)
{
    for (unsigned i = count; heap->delay != NULL && i > 1; i--) {
        unsigned other = chance(heap->delay, i);
        void *p = slots[i - 1];
        slots[i - 1] = slots[other];
        slots[other] = p;
    }
}
