/*
 * idle SEED [--threads N] [--seconds S]
 *
 * How much memory comes back from a program that does nothing. 150,000 blocks of 512 bytes, 100,000 of 1 KiB and
 * 50,000 of 2 KiB are allocated in an order shuffled by SEED and written whole, by N threads (default 1: the main
 * thread) each its share. Each keeps a random 1 in 20 of its blocks and frees the others in the order they came. Then
 * all sleep for S seconds (default 10), but for a look at the memory every half second. At the end the content of the
 * kept blocks is checked. An operation is a malloc or a free; only these two phases count for the throughput.
 *
 * Prints Extra = {...}, with
 *   curve           [[seconds since the start, KiB resident], ...]: at the start, at the peak, just after the frees,
 *                   then every half second
 *   peak_kib        the most of these: as a rule what is resident with all blocks allocated
 *   freed_kib       bytes of the blocks freed
 *   kept_kib        bytes of the blocks kept
 *   dead_page_kib   the 4 KiB pages on which there were bytes of freed blocks and none of a kept one: the most that an
 *                   allocator that cannot move blocks could give back of them
 *   huge_kib        in huge pages (AnonHugePages) with all blocks allocated
 *   end_kib         resident at the last look
 *   lazy_kib        of end_kib given back already, but resident until the kernel wants it (LazyFree)
 *   returned        (peak_kib - end_kib) / freed_kib
 * Resident is what /proc/self/statm says less the program's own tables, which are touched before the first look and
 * are not from the allocator; nor does looking allocate. huge_kib, less that of the tables, and lazy_kib are from
 * /proc/self/smaps_rollup, and absent where that is. They are read between the timed phases.
 */
#include <fcntl.h>
#include <unistd.h>

#include "workload.h"

enum { BLOCKS = 300000, KEEP_OF = 20, PAGE = 4096, PAGES = 1 << 20, LONGEST = 3600, SAMPLES = 2 * LONGEST + 3 };

struct held {
    unsigned char *data;
    uint32_t size;
    bool kept;
};

/* A page with a block on it: its number times 2, plus 1 if a kept block is there; 0 is a free place of the hash table.
 * No block is on more than two pages, so the table is never more than 57 % full. */
struct tables {
    struct held held[BLOCKS];
    uint64_t page[PAGES];
    struct {
        double seconds;
        long kib;
    } sample[SAMPLES];
};

struct worker {
    pthread_t thread;
    struct held *first;
    struct held *end;
    pthread_barrier_t *barrier; /* both ends of each phase: allocate, free, sleep */
};

static struct tables *tables;
static size_t samples;
static double begin_seconds;
static int statm;
static long own_huge_kib; /* of the tables */
static long huge_kib;

static void look(void)
{
    static char text[256];
    ssize_t length = pread(statm, text, sizeof text - 1, 0);
    char *after_size = memchr(text, ' ', length < 0 ? 0 : (size_t)length); /* "size resident ...", in pages */
    if (after_size == NULL)
        workload_fail("cannot read /proc/self/statm");
    long kib = strtol(after_size, NULL, 10) * (sysconf(_SC_PAGESIZE) / 1024);
    tables->sample[samples].seconds = timing_seconds() - begin_seconds;
    tables->sample[samples++].kib = kib - (long)(sizeof *tables / 1024);
}

/* A row of smaps_rollup in KiB, or -1 where it cannot be had. */
static long rollup_kib(const char *name)
{
    static char text[4096];
    int file = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
    if (file == -1)
        return -1;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    text[length < 0 ? 0 : length] = '\0';
    const char *row = strstr(text, name);
    return row == NULL ? -1 : strtol(row + strlen(name), NULL, 10);
}

static void plan_blocks(uint64_t seed)
{
    uint64_t state = workload_seed(seed, 0);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        uint32_t size = i < 150000 ? 512 : i < 250000 ? 1024 : 2048;
        uint64_t random = random_next(&state);
        uint64_t other = random_below(random, i + 1);
        tables->held[i] = tables->held[other];
        tables->held[other] = (struct held){.size = size, .kept = random_below(random << 32, KEEP_OF) == 0};
    }
}

static unsigned char content(const struct held *held)
{
    return (unsigned char)((held - tables->held) * 37 + 1);
}

static void allocate(const struct worker *worker)
{
    for (struct held *held = worker->first; held < worker->end; held++) {
        held->data = malloc(held->size);
        if (held->data == NULL)
            workload_fail("out of memory");
        memset(held->data, content(held), held->size);
    }
}

static void free_most(const struct worker *worker)
{
    for (struct held *held = worker->first; held < worker->end; held++)
        if (!held->kept)
            free(held->data);
}

static void mark_page(uint64_t number, bool kept)
{
    uint64_t place = number * 0x9e3779b97f4a7c15u >> 44; /* 64 bits less those of PAGES */
    while (tables->page[place] != 0 && tables->page[place] >> 1 != number)
        place = (place + 1) % PAGES;
    tables->page[place] |= number << 1 | kept;
}

/* How many pages have bytes of blocks and none of a kept block. */
static uint64_t dead_pages(void)
{
    for (const struct held *held = tables->held; held < tables->held + BLOCKS; held++) {
        uint64_t last = ((uintptr_t)held->data + held->size - 1) / PAGE;
        for (uint64_t page = (uintptr_t)held->data / PAGE; page <= last; page++)
            mark_page(page, held->kept);
    }
    uint64_t dead = 0;
    for (size_t i = 0; i < PAGES; i++)
        dead += tables->page[i] != 0 && (tables->page[i] & 1) == 0;
    return dead;
}

static void check_kept(void)
{
    for (const struct held *held = tables->held; held < tables->held + BLOCKS; held++)
        for (uint32_t i = 0; held->kept && i < held->size; i++)
            if (held->data[i] != content(held))
                workload_fail("a block has lost its content");
}

static void sleep_and_look(uint64_t seconds)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    for (uint64_t i = 0; i < 2 * seconds; i++) {
        time.tv_nsec += 500000000;
        time.tv_sec += time.tv_nsec / 1000000000;
        time.tv_nsec %= 1000000000;
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
            continue;
        look();
    }
}

static void *work(void *argument)
{
    const struct worker *worker = argument;
    pthread_barrier_wait(worker->barrier);
    allocate(worker);
    pthread_barrier_wait(worker->barrier);
    pthread_barrier_wait(worker->barrier);
    free_most(worker);
    pthread_barrier_wait(worker->barrier);
    pthread_barrier_wait(worker->barrier); /* until the main thread has slept enough */
    return NULL;
}

/* What the main thread does, which is a worker too. Returns the seconds of allocating and freeing. */
static double lead(const struct worker *worker, uint64_t seconds, uint64_t *dead)
{
    double start = timing_seconds();
    pthread_barrier_wait(worker->barrier);
    allocate(worker);
    pthread_barrier_wait(worker->barrier);
    double busy = timing_seconds() - start;
    look();
    huge_kib = rollup_kib("AnonHugePages:");
    *dead = dead_pages();
    start = timing_seconds();
    pthread_barrier_wait(worker->barrier);
    free_most(worker);
    pthread_barrier_wait(worker->barrier);
    busy += timing_seconds() - start;
    look();
    sleep_and_look(seconds);
    pthread_barrier_wait(worker->barrier);
    return busy;
}

/* KiB. To free may take memory, too. */
static long most_resident(void)
{
    long kib = 0;
    for (size_t i = 0; i < samples; i++)
        if (tables->sample[i].kib > kib)
            kib = tables->sample[i].kib;
    return kib;
}

/* Returns the blocks freed. */
static uint64_t print_extra(uint64_t dead)
{
    uint64_t bytes[2] = {0, 0}; /* freed, kept */
    uint64_t freed = 0;
    for (const struct held *held = tables->held; held < tables->held + BLOCKS; held++) {
        bytes[held->kept] += held->size;
        freed += !held->kept;
    }
    fputs("Extra = {\"curve\": [", stdout);
    for (size_t i = 0; i < samples; i++)
        printf("%s[%.2f, %ld]", i == 0 ? "" : ", ", tables->sample[i].seconds, tables->sample[i].kib);
    long peak = most_resident();
    long end = tables->sample[samples - 1].kib;
    printf("], \"peak_kib\": %ld, \"freed_kib\": %llu, \"end_kib\": %ld, \"kept_kib\": %llu, \"dead_page_kib\": %llu, "
           "\"returned\": %.4f", peak, (unsigned long long)bytes[0] / 1024, end,
           (unsigned long long)bytes[1] / 1024, (unsigned long long)dead * PAGE / 1024,
           (double)(peak - end) * 1024 / (double)bytes[0]);
    long lazy_kib = rollup_kib("LazyFree:");
    if (huge_kib >= 0)
        printf(", \"huge_kib\": %ld", huge_kib - own_huge_kib);
    if (lazy_kib >= 0)
        printf(", \"lazy_kib\": %ld", lazy_kib);
    puts("}");
    return freed;
}

int main(int count, char **words)
{
    uint64_t threads = 1;
    uint64_t seconds = 10;
    const struct workload_option options[] = {
        {"--threads", &threads, 1, 1024},
        {"--seconds", &seconds, 0, LONGEST},
    };
    if (count < 2 || !workload_options(count, words, 2, options, 2)) {
        fputs("usage: idle SEED [--threads N] [--seconds S]\n", stderr);
        return 2;
    }
    uint64_t seed = args_number("SEED", words[1], 1, UINT64_MAX / 2);
    statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    tables = workload_table(sizeof *tables);
    memset(tables, 0, sizeof *tables); /* touches it */
    plan_blocks(seed);
    own_huge_kib = rollup_kib("AnonHugePages:");
    begin_seconds = timing_seconds();
    look();

    static struct worker workers[1024];
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (uint64_t i = 0; i < threads; i++) {
        workers[i].first = tables->held + BLOCKS * i / threads;
        workers[i].end = tables->held + BLOCKS * (i + 1) / threads;
        workers[i].barrier = &barrier;
        if (i > 0)
            workers[i].thread = workload_thread(work, &workers[i]);
    }
    uint64_t dead;
    double busy = lead(&workers[0], seconds, &dead);
    for (uint64_t i = 1; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    check_kept();
    uint64_t freed = print_extra(dead);
    for (struct held *held = tables->held; held < tables->held + BLOCKS; held++)
        if (held->kept)
            free(held->data);
    workload_throughput(BLOCKS + freed, busy);
    return 0;
}
