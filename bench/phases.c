/*
 * phases SECONDS SEED [--adverse 1 | --only N]
 *
 * A program that becomes another one every SECONDS seconds, as the parts of a job do. What it does in turn, and what it wants of
 * an allocator then:
 *
 *   records  128 blocks of 1 to 16 KiB are allocated, then freed; again and again: wide magazines
 *   buffers  64 buffers of 2 MiB are allocated and written, then freed; again and again: 128 MiB of freed blocks to be kept
 *   up-down  64 MiB of blocks of 64 to 1024 bytes up and down, and 50 ms of sleep: pages that are not given back at once
 *   records  again: was it remembered?
 *   gaps     16 buffers of 1 MiB are wanted for a moment every 3 s, a few small blocks meanwhile: freed blocks to be kept for
 *            longer than a second; three times as long as the others
 *
 * With --adverse 1 it does what is worst for who learns, for 16 times SECONDS: records, buffers, up-down, and `litter` (buffers of
 * a size that is never asked for again: nothing to be kept), in an order and for times that are drawn from SEED, so that what was
 * learned of one is of no use, or wrong, in the next: at first of 20 to 160 ms, too short to learn anything, then of up to 1280.
 *
 * With --only N it does the Nth of the five, and nothing else.
 *
 * An operation is a block's whole life. Busy seconds are those on processors. Prints
 *   Extra = {"phases": [[name, begin, operations, busy seconds], ...],
 *            "series": [[seconds, operations, busy seconds, page faults, resident KiB], ...]}
 * a row of the series for each quarter of a second, or the rest of a phase, of what was done in it.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "workload.h"

enum { NODES = 2000, LEAST = 64, TIMES = 16, RECORDS = 128, RECORD_LEAST = 1024, BUFFERS = 64, GAP_BUFFERS = 16, PAGE = 4096, ROWS = 4000, PHASES = 1000 };

#define BUFFER_BYTES ((size_t)2 << 20)
#define UP_DOWN_BYTES ((size_t)64 << 20)
#define LITTER_LEAST ((uint64_t)256 << 10)
#define ROW_SECONDS 0.25
#define GAP_SECONDS 3.0

struct row {
    double seconds;
    uint64_t operations;
    double busy;
    uint64_t faults;
    uint64_t kib;
};

/* A phase that is over. */
struct done {
    const char *name;
    double begin;
    uint64_t operations;
    double busy;
};

struct program {
    double start;
    double next_gap;
    uint64_t state;
    uint64_t operations;
    struct block *table;
    struct row *row;
    size_t rows;
    struct row last; /* totals when the last row was made */
    size_t phases;
    struct done done[PHASES];
};

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

/* What the process has used of its processors, and its page faults. */
static struct row used(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (struct row){.busy = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime), .faults = (uint64_t)usage.ru_minflt};
}

/* Without stdio, which allocates. */
static uint64_t resident_kib(int statm)
{
    char text[100];
    char *end;
    ssize_t length = pread(statm, text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    (void)strtoull(text, &end, 10);
    return strtoull(end, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

static double now(const struct program *program)
{
    return timing_seconds() - program->start;
}

/* Of what was done since the last one, if that is `long_ago` enough, seconds. */
static void note_row(struct program *program, double long_ago, int statm)
{
    double seconds = now(program);
    if (seconds - program->last.seconds < long_ago || program->rows == ROWS)
        return;
    struct row total = used();
    total.seconds = seconds;
    total.operations = program->operations;
    program->row[program->rows++] = (struct row){
        total.seconds,
        total.operations - program->last.operations,
        total.busy - program->last.busy,
        total.faults - program->last.faults,
        resident_kib(statm),
    };
    program->last = total;
}

static void rest(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds};
    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    while (nanosleep(&time, &time) != 0 && errno == EINTR)
        continue;
}

/* At most so many blocks, and bytes. */
static uint64_t up_and_down(struct program *program, uint64_t count, size_t bytes, size_t least)
{
    uint64_t blocks = 0;
    for (size_t live = 0; blocks < count && live < bytes; blocks++) {
        program->table[blocks] = block_take(workload_size(random_next(&program->state), least, least * TIMES));
        live += program->table[blocks].size;
    }
    for (uint64_t i = 0; i < blocks; i++)
        block_drop(program->table[i]);
    return blocks;
}

static uint64_t take_buffers(struct program *program, uint64_t count, size_t size)
{
    for (uint64_t i = 0; i < count; i++) {
        struct block block = block_take(size);
        for (size_t at = PAGE; at < size - 1; at += PAGE)
            block.data[at] = 1;
        program->table[i] = block;
    }
    for (uint64_t i = 0; i < count; i++)
        block_drop(program->table[i]);
    return count;
}

static uint64_t records(struct program *program)
{
    return up_and_down(program, RECORDS, SIZE_MAX, RECORD_LEAST);
}

static uint64_t buffers(struct program *program)
{
    return take_buffers(program, BUFFERS, BUFFER_BYTES);
}

static uint64_t valley(struct program *program)
{
    return up_and_down(program, UINT64_MAX, UP_DOWN_BYTES, LEAST);
}

static uint64_t gaps(struct program *program)
{
    if (now(program) < program->next_gap)
        return up_and_down(program, NODES, SIZE_MAX, LEAST);
    program->next_gap = now(program) + GAP_SECONDS;
    return take_buffers(program, GAP_BUFFERS, BUFFER_BYTES / 2);
}

static uint64_t litter(struct program *program)
{
    return take_buffers(program, 1, LITTER_LEAST + PAGE * random_below(random_next(&program->state), 4096));
}

struct phase {
    const char *name;
    uint64_t (*step)(struct program *program);
    double rest;   /* seconds after each step */
    double times;  /* as long as the others */
};

static const struct phase plan[] = {
    {"records", records, 0, 1}, {"buffers", buffers, 0, 1}, {"up-down", valley, 0.05, 1},
    {"records", records, 0, 1}, {"gaps", gaps, 0.005, 3},
};

static const struct phase adverse[] = {
    {"records", records, 0, 1}, {"buffers", buffers, 0, 1}, {"up-down", valley, 0.02, 1}, {"litter", litter, 0, 1},
};

enum { PLANNED = sizeof plan / sizeof plan[0], ADVERSE = sizeof adverse / sizeof adverse[0], ADVERSE_TIMES = 16 };

static void run(struct program *program, const struct phase *phase, double seconds, int statm)
{
    double begin = now(program);
    uint64_t operations = program->operations;
    double busy = used().busy;
    while (now(program) < begin + seconds) {
        program->operations += phase->step(program);
        if (phase->rest > 0)
            rest(phase->rest);
        note_row(program, ROW_SECONDS, statm);
    }
    note_row(program, 0, statm);
    if (program->phases < PHASES)
        program->done[program->phases++] = (struct done){
            phase->name, begin, program->operations - operations, used().busy - busy};
}

/* The plan is the same whatever the phases draw. */
static void run_adverse(struct program *program, double seconds, int statm)
{
    uint64_t state = workload_seed(program->state, 1);
    while (now(program) < seconds) {
        const struct phase *phase = &adverse[random_below(random_next(&state), ADVERSE)];
        uint64_t doublings = random_below(random_next(&state), 4) + (now(program) < seconds / 2 ? 0 : 3);
        run(program, phase, 0.02 * (double)(1 << doublings), statm);
    }
}

static void print(const struct program *program)
{
    workload_throughput(program->operations, used().busy);
    printf("Extra = {\"phases\": [");
    for (size_t i = 0; i < program->phases; i++)
        printf("%s[\"%s\", %.3f, %llu, %.6f]", i > 0 ? ", " : "", program->done[i].name, program->done[i].begin,
               (unsigned long long)program->done[i].operations, program->done[i].busy);
    printf("], \"series\": [");
    for (size_t i = 0; i < program->rows; i++) {
        const struct row *row = &program->row[i];
        printf("%s[%.3f, %llu, %.6f, %llu, %llu]", i > 0 ? ", " : "", row->seconds, (unsigned long long)row->operations,
               row->busy, (unsigned long long)row->faults, (unsigned long long)row->kib);
    }
    printf("]}\n");
}

int main(int count, char **words)
{
    uint64_t is_adverse = 0;
    uint64_t only = 0;
    const struct workload_option options[] = {{"--adverse", &is_adverse, 0, 1}, {"--only", &only, 1, PLANNED}};
    if (count < 3 || !workload_options(count, words, 3, options, 2)) {
        fputs("usage: phases SECONDS SEED [--adverse 1 | --only N]\n", stderr);
        return 2;
    }
    double seconds = (double)args_number("SECONDS", words[1], 1, 1000);
    static struct program program;
    program.state = workload_seed(args_number("SEED", words[2], 1, UINT64_MAX / 2), 0);
    program.table = workload_table((UP_DOWN_BYTES / LEAST + 1) * sizeof *program.table);
    program.row = workload_table(ROWS * sizeof *program.row);
    int statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    program.start = timing_seconds();
    program.last = used();
    if (is_adverse != 0)
        run_adverse(&program, seconds * ADVERSE_TIMES, statm);
    else
        for (size_t i = 0; i < PLANNED; i++)
            if (only == 0 || only == i + 1)
                run(&program, &plan[i], seconds * plan[i].times, statm);
    print(&program);
    return 0;
}
