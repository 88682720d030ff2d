#include "heap/mail.h"

#include "arena/arena.h"
#include "arena/meta.h"
#include "base/clock.h"
#include "heap/interrupt.h"
#include "heap/magazine.h"
#include "heap/report.h"
#include "heap/shelf.h"

enum { LETTERS_KEPT = 8 };

/* An inbox may hold so much; so much if its first letter has waited so long (a thread that only waits for a processor
 * comes sooner); and so much if its heap has no thread. If the owner has not been at its door since the first letter, it may
 * hold this part of the heap, and so much at least, doubled as often as the owner did not sleep after all. */
#define PILE_MOST (2 * MIB)
#define PILE_MOST_LATE (64 * KIB)
#define PILE_MOST_IDLE (128 * KIB)
enum { LATE_MS = 2, LEFT_PART = 4 };
#define LEFT_LEAST (256 * KIB)

struct lock letters_lock = LOCK_INITIALIZER(LOCK_LETTERS);
static struct letter *pool; /* empty letters that no heap keeps */

static struct letter *from_pool(void)
{
    lock_take(&letters_lock);
    struct letter *letter = pool;
    if (letter != NULL)
        pool = letter->next;
    lock_drop(&letters_lock);
    return letter != NULL ? letter : meta_alloc(sizeof(struct letter));
}

static struct letter *take_letter(struct heap *heap)
{
    struct letter *letter = heap->letters;
    if (letter != NULL) {
        heap->letters = letter->next;
        heap->letters_kept--;
    } else {
        letter = from_pool();
    }
    if (letter != NULL)
        letter->bytes = letter->count = 0;
    return letter;
}

/* One-way traffic would pile all letters up at the receiver: beyond a few they go to the pool, half at once. */
static void keep_letter(struct heap *heap, struct letter *letter)
{
    letter->next = heap->letters;
    heap->letters = letter;
    if (++heap->letters_kept < LETTERS_KEPT)
        return;
    struct letter *last = letter;
    for (int i = 1; i < LETTERS_KEPT / 2; i++)
        last = last->next;
    heap->letters = last->next;
    heap->letters_kept -= LETTERS_KEPT / 2;
    lock_take(&letters_lock);
    last->next = pool;
    pool = letter;
    lock_drop(&letters_lock);
}

/* The letter below may have been taken meanwhile, and be on its way again: then pile and time are off. */
static void post(struct heap *to, struct letter *letter)
{
    uint32_t here = (uint32_t)divide_up(letter->bytes + sizeof *letter, PILE_GRAIN);
    struct letter *first = load_relaxed(&to->inbox);
    do {
        uint32_t below = first != NULL ? load_relaxed(&first->pile) : 0;
        store_relaxed(&letter->pile, below + here);
        store_relaxed(&letter->since, first != NULL ? load_relaxed(&first->since) : (uint32_t)clock_now_ms());
        store_relaxed(&letter->visits, first != NULL ? load_relaxed(&first->visits) : (uint16_t)load_relaxed(&to->visits));
        letter->next = first;
    } while (!__atomic_compare_exchange_n(&to->inbox, &first, letter, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

static size_t pile_of(const struct letter *newest)
{
    return newest != NULL ? (size_t)load_relaxed(&newest->pile) * PILE_GRAIN : 0;
}

/* What is unread does not count: the owner was at its door when it left that. */
static bool is_left_alone(const struct heap *to, const struct letter *newest)
{
    size_t part = max_size((load_relaxed(&to->units) << UNIT_SHIFT) / LEFT_PART, LEFT_LEAST);
    return pile_of(newest) > min_size(part << load_relaxed(&to->woken), PILE_MOST)
           && load_relaxed(&newest->visits) == (uint16_t)load_relaxed(&to->visits);
}

enum mail_state mail_state(const struct heap *to)
{
    const struct letter *newest = load_relaxed(&to->inbox);
    const struct letter *unread = load_relaxed(&to->unread);
    const struct letter *oldest = unread != NULL ? unread : newest;
    if (oldest == NULL)
        return MAIL_FINE;
    size_t pile = pile_of(newest) + pile_of(unread);
    if (load_relaxed(&to->tls) == NULL)
        return pile > PILE_MOST_IDLE ? MAIL_MUCH : MAIL_FINE;
    if (pile > PILE_MOST_LATE && (int32_t)((uint32_t)clock_now_ms() - load_relaxed(&oldest->since)) > LATE_MS)
        return MAIL_LATE;
    if (is_left_alone(to, newest))
        return MAIL_LEFT;
    return pile > PILE_MOST ? MAIL_MUCH : MAIL_FINE;
}

static void post_outbox(struct heap *from, struct letter **box)
{
    struct letter *letter = *box;
    if (letter == NULL)
        return;
    struct heap *to = letter->to;
    *box = NULL;
    from->outbox_bytes -= letter->bytes;
    from->freed += letter->bytes;
    post(to, letter);
    tally(from, COUNT_POSTED);
    if (mail_state(to) != MAIL_FINE)
        from->piled = to;
}

void mail_post_all(struct heap *from)
{
    for (int i = 0; i < OUTBOXES && from->outbox_bytes != 0; i++)
        post_outbox(from, &from->outbox[i]);
}

/* The outbox for `to`, with an open letter in it; NULL: no memory. */
static struct letter **outbox_for(struct heap *from, struct heap *to)
{
    struct letter **box = mail_outbox(from, to);
    if (*box != NULL && (*box)->to == to)
        return box;
    post_outbox(from, box);
    struct letter *letter = take_letter(from);
    if (letter == NULL)
        return NULL;
    letter->to = to;
    *box = letter;
    return box;
}

bool mail_send(struct heap *from, struct heap *to, void *p)
{
    unsigned class = arena_tag(p) % SIZE_CLASSES;
    struct letter **box = outbox_for(from, to);
    if (box == NULL)
        return false;
    if (UNLIKELY((*box)->count > 0 && mail_last(*box) == p))
        report_pointer(FAULT_DOUBLE_FREE, p);
    mail_put(from, *box, p, size_classes[class].size);
    if ((*box)->count == LETTER_BLOCKS)
        post_outbox(from, box);
    if (from->outbox_bytes > OUTBOX_BYTES_MOST)
        mail_post_all(from);
    return true;
}

static bool into_magazine(struct heap *heap, unsigned class, void *p)
{
    if (magazine_is_full(heap, class))
        return false;
    if (UNLIKELY(!slab_holds(arena_span(p), p)))
        report_pointer(FAULT_INVALID_FREE, p);
    return magazine_keep(heap, class, p);
}

/* One block, for heap unless its tag says otherwise by now. False: no memory to forward it. */
static bool deliver(struct heap *heap, void *p, bool to_magazines)
{
    uintptr_t tag = arena_tag(p);
    uintptr_t class = tag ^ (uintptr_t)heap;
    if (UNLIKELY(class >= SIZE_CLASSES)) {
        if (tag < TAG_KINDS)
            report_pointer(FAULT_DOUBLE_FREE, p); /* its slab has been given up since it was sent */
        tally(heap, COUNT_FORWARDED);
        return mail_send(heap, mail_owner(tag), p);
    }
    if (!to_magazines || !into_magazine(heap, (unsigned)class, p))
        shelf_put(heap, p);
    return true;
}

/* Empties a letter. What could not be forwarded comes back in it, for the next time. */
static void read_letter(struct heap *heap, struct letter *letter, bool to_magazines)
{
    uint16_t left = 0;
    owner_add(&heap->counts->of[COUNT_RECEIVED], letter->count);
    for (uint32_t i = 0; i < letter->count; i++)
        if (UNLIKELY(!deliver(heap, letter->block[i], to_magazines)))
            letter->block[left++] = letter->block[i];
    letter->count = left;
    letter->bytes = 0;
    if (left > 0)
        post(heap, letter);
    else
        keep_letter(heap, letter);
}

static struct letter *take_inbox(struct heap *heap)
{
    return exchange_acquire(&heap->inbox, (struct letter *)NULL);
}

/* Its owner is awake: what is left is late when nobody has read for so long. */
static void leave_unread(struct heap *heap, struct letter *letters)
{
    if (letters != NULL)
        store_relaxed(&letters->since, (uint32_t)clock_now_ms());
    store_relaxed(&heap->unread, letters);
}

bool mail_fill(struct heap *heap, unsigned class)
{
    bool took_inbox = false;
    bool read = false;
    while (magazine_count(heap, class) == 0) {
        struct letter *letter = heap->unread;
        if (letter == NULL && !took_inbox) {
            letter = take_inbox(heap);
            took_inbox = true;
        }
        if (letter == NULL)
            return false;
        /* First: a signal handler that ends the thread here leaves no letter that is read twice. */
        leave_unread(heap, letter->next);
        read_letter(heap, letter, true);
        read = true;
    }
    return read;
}

static void read_all(struct heap *heap, struct letter *letters, bool to_magazines)
{
    while (letters != NULL) {
        struct letter *next = letters->next;
        read_letter(heap, letters, to_magazines);
        letters = next;
    }
}

void mail_collect(struct heap *heap, bool to_magazines)
{
    struct letter *unread = heap->unread;
    to_magazines = to_magazines && !interrupt_holds_magazines(heap);
    if (unread != NULL)
        leave_unread(heap, NULL);
    read_all(heap, unread, to_magazines);
    read_all(heap, take_inbox(heap), to_magazines);
}
