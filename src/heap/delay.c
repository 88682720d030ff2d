#include "heap/delay.h"

#include "heap/interrupt.h"
#include "heap/magazine.h"
#include "heap/seal.h"
#include "os/os.h"

enum { LEAST = 2 };

void delay_start(struct heap *heap)
{
    delay_of(heap)->random = os_random() | 1;
}

static unsigned slots_of(unsigned class)
{
    uint32_t size = size_classes[class].size;
    return size <= DELAY_ALL_SLOTS ? DELAY_SLOTS : (unsigned)max_size(DELAY_BYTES_MOST / size, LEAST);
}

FRAGILE void *delay_exchange(struct heap *heap, unsigned class, void *p)
{
    struct delay *delay = delay_of(heap);
    if (interrupt_holds_magazines(heap))
        return p;
    void **slot = &delay->slot[class][(delay_random(delay) >> 32) * slots_of(class) >> 32];
    void *waited = *slot;
    *slot = p;
    return waited;
}

void delay_empty_class(struct heap *heap, unsigned class)
{
    if (interrupt_holds_magazines(heap))
        return;
    for (unsigned i = 0; i < DELAY_SLOTS; i++) {
        void **slot = &delay_of(heap)->slot[class][i];
        void *p = __atomic_exchange_n(slot, NULL, __ATOMIC_ACQ_REL);
        void *none = NULL; /* unless a signal handler has freed into it meanwhile; then this one is lost */
        if (p != NULL && !magazine_give_back(heap, class, p))
            (void)__atomic_compare_exchange_n(slot, &none, p, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

void delay_empty(struct heap *heap)
{
    for (unsigned class = 0; class < SIZE_CLASSES; class++)
        delay_empty_class(heap, class);
}

/* A random number serves four times; `count` is small. */
static void shuffle(struct delay *delay, void **slots, unsigned count)
{
    uint64_t random = 0;
    for (unsigned i = count; i > 1; i--, random >>= 16) {
        if ((count - i) % 4 == 0)
            random = delay_random(delay);
        unsigned other = (unsigned)(random & 0xffff) * i >> 16;
        void *p = slots[i - 1];
        slots[i - 1] = slots[other];
        slots[other] = p;
    }
}

void delay_refill(struct heap *heap, unsigned class, void **slots, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        __builtin_prefetch((char *)slots[i] + seal_room(class), 1);
    shuffle(delay_of(heap), slots, count);
}
