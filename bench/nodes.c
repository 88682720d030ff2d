/*
 * nodes KIND COUNT ROUNDS SEED
 *
 * The structures that programs make of small blocks. Their nodes have 16 to 80 bytes, at random.
 *
 *   tree  a binary search tree, not balanced: the keys are random
 *   hash  a chained hash table that doubles its buckets as it grows; a key is a string of 16 to 47 letters, in a block
 *         of its own
 *   list  64 linked lists
 *
 * A round of tree and hash inserts COUNT keys, looks up one in four, deletes every second, inserts as many others,
 * and deletes all. A round of list appends COUNT nodes to lists picked at random and, after each 64, moves all of one
 * list to the end of another; then it walks all lists and removes each node or not, at random, appends half of COUNT
 * and removes all. What has been put in is checked to be found. An operation is a node appended, inserted, looked up
 * or removed, or a list moved.
 */
#include "workload.h"

enum { LISTS = 64, SPLICE_EVERY = 64, LOOK_UP_EVERY = 4, LEAST_BUCKETS = 16, LEAST_KEY = 16, KEY_WORDS = 6 };

static void *take_node(size_t size)
{
    char *node = malloc(size);
    if (node == NULL)
        workload_fail("out of memory");
    node[size - 1] = 1;
    return node;
}

/* Another number for each: in no order, and never the same twice. */
static uint64_t mix(uint64_t number)
{
    number = (number ^ number >> 32) * 0x9e3779b97f4a7c15u;
    number = (number ^ number >> 29) * 0xbf58476d1ce4e5b9u;
    return number ^ number >> 32;
}

/* ---- tree */

struct branch {
    struct branch *child[2];
    uint64_t key;
};

static struct branch *root;

static struct branch **tree_place(uint64_t key)
{
    struct branch **place = &root;
    while (*place != NULL && (*place)->key != key)
        place = &(*place)->child[key > (*place)->key];
    return place;
}

static void tree_insert(uint64_t number)
{
    uint64_t key = mix(number);
    struct branch *branch = take_node(sizeof *branch + 8 * (key & 7));
    *branch = (struct branch){.key = key};
    *tree_place(key) = branch;
}

static bool tree_find(uint64_t number)
{
    return *tree_place(mix(number)) != NULL;
}

static bool tree_delete(uint64_t number)
{
    struct branch **place = tree_place(mix(number));
    struct branch *gone = *place;
    if (gone == NULL)
        return false;
    if (gone->child[0] != NULL && gone->child[1] != NULL) {
        struct branch **next = &gone->child[1];
        while ((*next)->child[0] != NULL)
            next = &(*next)->child[0];
        struct branch *heir = *next;
        *next = heir->child[1];
        heir->child[0] = gone->child[0];
        heir->child[1] = gone->child[1];
        *place = heir;
    } else {
        *place = gone->child[gone->child[0] == NULL];
    }
    free(gone);
    return true;
}

/* ---- hash */

struct link {
    struct link *next;
    char *text;
    uint64_t hash;
};

struct key {
    char text[8 * KEY_WORDS];
    size_t length;
    uint64_t hash;
};

static struct link **buckets;
static uint64_t bucket_count; /* a power of two, or 0 */
static uint64_t link_count;

static struct key key_make(uint64_t number)
{
    uint64_t mixed = mix(number);
    struct key key = {.length = LEAST_KEY + (mixed >> 59), .hash = mixed};
    for (unsigned i = 0; i < KEY_WORDS; i++) {
        uint64_t letters = (mixed >> i % 2 * 4 & 0x0f0f0f0f0f0f0f0fu) + 0x6161616161616161u; /* a to p */
        memcpy(key.text + 8 * i, &letters, sizeof letters);
        if (i < LEAST_KEY / 8)
            key.hash = mix(key.hash ^ letters);
    }
    key.text[key.length] = '\0';
    return key;
}

static struct link **hash_place(const struct key *key)
{
    struct link **place = &buckets[key->hash & (bucket_count - 1)];
    while (*place != NULL && ((*place)->hash != key->hash || strcmp((*place)->text, key->text) != 0))
        place = &(*place)->next;
    return place;
}

static void hash_grow(void)
{
    uint64_t larger = bucket_count == 0 ? LEAST_BUCKETS : 2 * bucket_count;
    struct link **wider = calloc(larger, sizeof *wider);
    if (wider == NULL)
        workload_fail("out of memory");
    for (uint64_t i = 0; i < bucket_count; i++) {
        for (struct link *next, *link = buckets[i]; link != NULL; link = next) {
            next = link->next;
            link->next = wider[link->hash & (larger - 1)];
            wider[link->hash & (larger - 1)] = link;
        }
    }
    free(buckets);
    buckets = wider;
    bucket_count = larger;
}

static void hash_insert(uint64_t number)
{
    if (link_count++ == bucket_count)
        hash_grow();
    struct key key = key_make(number);
    struct link *link = take_node(sizeof *link + 8 * (key.hash >> 61));
    *link = (struct link){.text = take_node(key.length + 1), .hash = key.hash};
    memcpy(link->text, key.text, key.length + 1);
    *hash_place(&key) = link;
}

static bool hash_find(uint64_t number)
{
    struct key key = key_make(number);
    return *hash_place(&key) != NULL;
}

static bool hash_delete(uint64_t number)
{
    struct key key = key_make(number);
    struct link **place = hash_place(&key);
    struct link *gone = *place;
    if (gone == NULL)
        return false;
    *place = gone->next;
    free(gone->text);
    free(gone);
    if (--link_count == 0) {
        free(buckets);
        buckets = NULL;
        bucket_count = 0;
    }
    return true;
}

/* ---- tree and hash: a key is made of a number */

struct map {
    void (*insert)(uint64_t number);
    bool (*find)(uint64_t number);
    bool (*delete)(uint64_t number);
};

static uint64_t delete_range(const struct map *map, uint64_t first, uint64_t end, uint64_t step)
{
    uint64_t done = 0;
    for (uint64_t i = first; i < end; i += step, done++)
        if (!map->delete(i))
            workload_fail("a key is lost");
    return done;
}

/* With the numbers first to first + 2 * count - 1. */
static uint64_t map_round(const struct map *map, uint64_t first, uint64_t count)
{
    uint64_t end = first + count;
    uint64_t done = count;
    for (uint64_t i = first; i < end; i++)
        map->insert(i);
    for (uint64_t i = first; i < end; i += LOOK_UP_EVERY, done++)
        if (!map->find(i))
            workload_fail("a key is lost");
    done += delete_range(map, first + 1, end, 2);
    for (uint64_t i = first + 1; i < end; i += 2, done++)
        map->insert(i + count);
    done += delete_range(map, first, end, 2);
    done += delete_range(map, first + 1 + count, end + count, 2);
    if (root != NULL || link_count != 0)
        workload_fail("more keys than were inserted");
    return done;
}

/* ---- list */

struct item {
    struct item *next;
    uint64_t value;
};

struct list {
    struct item *first;
    struct item **end; /* where the next one goes */
};

static struct list lists[LISTS];
static uint64_t total; /* of the values in all lists, modulo 2^64 */

static struct list *list_at_random(uint64_t *state)
{
    return &lists[random_below(random_next(state), LISTS)];
}

static void list_append(uint64_t *state, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct list *list = list_at_random(state);
        struct item *item = take_node(sizeof *item + 8 * random_below(*state << 32, 9));
        *item = (struct item){.value = *state};
        total += *state;
        *list->end = item;
        list->end = &item->next;
    }
}

static void list_splice(struct list *to, struct list *from)
{
    if (to == from || from->first == NULL)
        return;
    *to->end = from->first;
    to->end = from->end;
    from->first = NULL;
    from->end = &from->first;
}

/* Removes one in `one_in`, at random. */
static uint64_t list_remove(uint64_t *state, uint64_t one_in)
{
    uint64_t done = 0;
    for (struct list *list = lists; list < lists + LISTS; list++) {
        struct item **place = &list->first;
        while (*place != NULL) {
            struct item *item = *place;
            if (random_below(random_next(state), one_in) != 0) {
                place = &item->next;
                continue;
            }
            *place = item->next;
            total -= item->value;
            free(item);
            done++;
        }
        list->end = place;
    }
    return done;
}

static uint64_t list_round(uint64_t *state, uint64_t count)
{
    uint64_t done = count + count / 2;
    for (uint64_t left = count; left > 0;) {
        uint64_t run = left < SPLICE_EVERY ? left : SPLICE_EVERY;
        list_append(state, run);
        left -= run;
        struct list *to = list_at_random(state);
        list_splice(to, list_at_random(state));
        done++;
    }
    done += list_remove(state, 2);
    list_append(state, count / 2);
    done += list_remove(state, 1);
    if (total != 0)
        workload_fail("a list has lost its content");
    return done;
}

int main(int count, char **words)
{
    static const struct map tree = {tree_insert, tree_find, tree_delete};
    static const struct map hash = {hash_insert, hash_find, hash_delete};
    const char *kind = count != 5 ? "" : words[1];
    const struct map *map = strcmp(kind, "tree") == 0 ? &tree : strcmp(kind, "hash") == 0 ? &hash : NULL;
    if (map == NULL && strcmp(kind, "list") != 0) {
        fputs("usage: nodes tree|list|hash COUNT ROUNDS SEED\n", stderr);
        return 2;
    }
    uint64_t nodes = args_number("COUNT", words[2], 2, UINT32_MAX);
    uint64_t rounds = args_number("ROUNDS", words[3], 1, UINT32_MAX);
    uint64_t state = workload_seed(args_number("SEED", words[4], 1, UINT64_MAX / 2), 0);
    for (struct list *list = lists; list < lists + LISTS; list++)
        list->end = &list->first;

    uint64_t operations = 0;
    double start = timing_seconds();
    for (uint64_t i = 0; i < rounds; i++)
        operations += map != NULL ? map_round(map, state + 2 * nodes * i, nodes) : list_round(&state, nodes);
    double seconds = timing_seconds() - start;
    workload_throughput(operations, seconds);
    return 0;
}
