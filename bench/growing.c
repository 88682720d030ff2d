/*
 * growing KIND COUNT SEED [--largest BYTES]
 *
 * COUNT vectors that grow by realloc, are checked in full and freed. Each ends at a random size of up to --largest
 * bytes, each doubling as likely as any other.
 *
 *   inplace  one at a time, of 8-byte elements, by factors of 1.5 and 2 in turn; --largest is 256 MiB by default
 *   moving   the same, eight in turn, so that each stands in the way of another; 32 MiB by default
 *   string   1024 strings at a time; one at random is made longer by 1 to 16 bytes, and no more; 8 KiB by default
 *
 * An operation is an element (or, of a string, 1 to 16 bytes) appended. The time of the checks is not counted.
 */
#include "workload.h"

enum { MOVING = 8, STRINGS = 1024, FIRST_ROOM = 128, RUN = 64, LEAST_VECTOR = 1024, LEAST_STRING = 16, PIECE = 16 };

struct vector {
    char *data;
    size_t used; /* all in bytes */
    size_t room;
    size_t target;
    uint64_t number; /* of this vector, from 0: part of its content */
};

struct plan {
    uint64_t count;
    uint64_t state;
    uint64_t largest;
    uint64_t started;
    uint64_t operations;
    double seconds_checking;
    struct vector vectors[STRINGS];
};

static uint64_t element(uint64_t number, size_t index)
{
    return (uint64_t)index * 0x9e3779b97f4a7c15u + number;
}

static char letter(uint64_t number, size_t index)
{
    return (char)(index * 7 + (index >> 8) + number);
}

static void start(struct plan *plan, struct vector *vector, size_t least)
{
    size_t target = workload_size(random_next(&plan->state), least, plan->largest);
    *vector = (struct vector){.target = target, .number = plan->started++};
}

static void resize(struct vector *vector, size_t room)
{
    vector->data = realloc(vector->data, room);
    if (vector->data == NULL)
        workload_fail("out of memory");
    vector->room = room;
}

static uint64_t append_elements(struct vector *vector)
{
    uint64_t done = 0;
    for (; done < RUN && vector->used < vector->target; done++) {
        if (vector->used == vector->room) {
            size_t larger = vector->number % 2 == 0 ? vector->room / 2 * 3 : vector->room * 2;
            resize(vector, larger == 0 ? FIRST_ROOM : larger & ~(size_t)7);
        }
        *(uint64_t *)(void *)(vector->data + vector->used) = element(vector->number, vector->used / 8);
        vector->used += 8;
    }
    return done;
}

static uint64_t append_letters(struct vector *vector, uint64_t random)
{
    size_t end = vector->used + 1 + random % PIECE;
    resize(vector, end);
    for (; vector->used < end; vector->used++)
        vector->data[vector->used] = letter(vector->number, vector->used);
    return 1;
}

static void finish(struct plan *plan, struct vector *vector, bool string)
{
    double start = timing_seconds();
    uint64_t wrong = 0;
    if (string)
        for (size_t i = 0; i < vector->used; i++)
            wrong |= vector->data[i] != letter(vector->number, i);
    else
        for (size_t i = 0; i < vector->used / 8; i++)
            wrong |= ((uint64_t *)(void *)vector->data)[i] ^ element(vector->number, i);
    if (wrong != 0)
        workload_fail("a vector has lost its content");
    plan->seconds_checking += timing_seconds() - start;
    free(vector->data);
}

/* With `live` vectors at a time, until all are finished. */
static inline __attribute__((always_inline)) void run(struct plan *plan, size_t live, bool string)
{
    size_t least = string ? LEAST_STRING : LEAST_VECTOR;
    if (live > plan->count)
        live = (size_t)plan->count;
    for (size_t i = 0; i < live; i++)
        start(plan, &plan->vectors[i], least);
    for (size_t turn = 0; live > 0; turn++) {
        uint64_t random = string ? random_next(&plan->state) : 0;
        if (turn >= live)
            turn = 0;
        struct vector *vector = &plan->vectors[string ? random_below(random, live) : turn];
        plan->operations += string ? append_letters(vector, random) : append_elements(vector);
        if (vector->used < vector->target)
            continue;
        finish(plan, vector, string);
        if (plan->started < plan->count)
            start(plan, vector, least);
        else
            *vector = plan->vectors[--live];
    }
}

int main(int count, char **words)
{
    uint64_t largest = 0;
    const struct workload_option options[] = {{"--largest", &largest, 2 * LEAST_VECTOR, 1 << 30}};
    const char *kind = count < 4 ? "" : words[1];
    bool inplace = strcmp(kind, "inplace") == 0;
    bool string = strcmp(kind, "string") == 0;
    if ((!inplace && !string && strcmp(kind, "moving") != 0) || !workload_options(count, words, 4, options, 1)) {
        fputs("usage: growing inplace|moving|string COUNT SEED [--largest BYTES]\n", stderr);
        return 2;
    }
    if (largest == 0)
        largest = string ? 8 << 10 : inplace ? 256 << 20 : 32 << 20;
    struct plan *plan = workload_table(sizeof *plan);
    plan->count = args_number("COUNT", words[2], 1, UINT64_MAX / 2);
    plan->state = workload_seed(args_number("SEED", words[3], 1, UINT64_MAX / 2), 0);
    plan->largest = largest;

    double begin = timing_seconds();
    if (string)
        run(plan, STRINGS, true);
    else
        run(plan, inplace ? 1 : MOVING, false);
    double seconds = timing_seconds() - begin - plan->seconds_checking;
    workload_throughput(plan->operations, seconds);
    return 0;
}
