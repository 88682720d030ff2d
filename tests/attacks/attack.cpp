/*
 * One memory bug, as an attacker or a mistake would have it: attack CLASS SIZE VARIANT. `attack --list` prints all.
 *
 * What happens is told by single letters on standard output, so that who runs this knows where it was stopped:
 *   S  everything is ready, the bug comes next        D  it is done
 *   F  the blocks are freed, many others come and go   E  main returns
 *   H  the bug had its effect                          N  it had none
 * Compiled without optimization: compilers may do what they like with such programs.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

void tell(char letter)
{
    if (write(STDOUT_FILENO, &letter, 1) != 1)
        _exit(99);
}

void verdict(bool had_effect)
{
    tell(had_effect ? 'H' : 'N');
}

char *volatile kept[64];
char global[4096];

/* Blocks of this size and others come and go, as in a program that goes on. */
void go_on(std::size_t size, int rounds = 2000)
{
    void *held[32] = {};
    for (int i = 0; i < rounds; i++) {
        free(held[i % 32]);
        held[i % 32] = malloc(i % 3 != 0 ? size : 16 + static_cast<std::size_t>(i) % 500);
    }
    for (void *block : held)
        free(block);
}

/* With neighbours on both sides. */
char *among_others(std::size_t size)
{
    for (int i = 0; i < 32; i++)
        kept[i] = static_cast<char *>(malloc(size));
    char *block = kept[15];
    memset(block, 'x', size);
    return block;
}

void free_all()
{
    for (int i = 0; i < 32; i++)
        free(kept[i]);
}

void *free_in_thread(void *block)
{
    free(block);
    return nullptr;
}

void in_thread(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, nullptr, run, argument) == 0)
        pthread_join(thread, nullptr);
}

/* ---- Double free: effective if two later blocks are one. */

bool is_handed_out_twice(std::size_t size)
{
    static char *blocks[512];
    for (char *&block : blocks)
        block = static_cast<char *>(malloc(size));
    for (int i = 0; i < 512; i++)
        for (int j = 0; j < i; j++)
            if (blocks[i] == blocks[j])
                return true;
    return false;
}

void double_free(std::size_t size, const char *variant)
{
    char *block = among_others(size);
    free(block);
    if (strcmp(variant, "interleaved") == 0)
        free(kept[3]);
    if (strcmp(variant, "delayed") == 0)
        for (int i = 0; i < 12; i++)
            free(kept[i]);
    if (strcmp(variant, "after-reuse") == 0)
        for (int i = 0; i < 64; i++)
            if (malloc(size) == block)
                break;
    tell('S');
    if (strcmp(variant, "cross-thread") == 0)
        in_thread(free_in_thread, block);
    else if (strcmp(variant, "by-realloc") == 0)
        kept[40] = static_cast<char *>(realloc(block, size * 2));
    else
        free(block);
    tell('D');
    bool twice = is_handed_out_twice(size);
    tell('F');
    go_on(size);
    verdict(twice || strcmp(variant, "after-reuse") == 0);
}

/* ---- Free of what is no block. */

void invalid_free(std::size_t size, const char *variant)
{
    char local[256] = {};
    char *block = among_others(size);
    char *p = block;
    if (strcmp(variant, "interior-8") == 0)
        p = block + 8;
    else if (strcmp(variant, "interior-16") == 0)
        p = block + 16;
    else if (strcmp(variant, "unaligned") == 0)
        p = block + 1;
    else if (strcmp(variant, "stack") == 0)
        p = local + 64;
    else if (strcmp(variant, "global") == 0)
        p = global + 1024;
    else if (strcmp(variant, "mapped") == 0)
        p = static_cast<char *>(mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) + 4096;
    else if (strcmp(variant, "far") == 0)
        p = reinterpret_cast<char *>(0x123456789ab0);
    else if (strcmp(variant, "before") == 0)
        p = block - 16;
    memset(local, 0x40, sizeof local);
    tell('S');
    free(p);
    tell('D');
    go_on(size);
    tell('F');
    go_on(size);
    verdict(true);
}

/* ---- Overflow and underflow: effective if a neighbour has changed. */

void overflow(std::size_t size, const char *variant)
{
    bool copied = strncmp(variant, "memcpy-", 7) == 0;
    long bytes = strtol(variant + (copied ? 7 : 0), nullptr, 10);
    char *block = among_others(size);
    tell('S');
    char *from = bytes > 0 ? block + size : block + bytes;
    std::size_t count = static_cast<std::size_t>(bytes > 0 ? bytes : -bytes);
    if (copied) {
        static char source[1 << 20];
        memset(source, 'A', sizeof source);
        memcpy(from, source, count);
    } else {
        for (std::size_t i = 0; i < count; i++)
            static_cast<volatile char *>(from)[bytes > 0 ? i : count - 1 - i] = 'A';
    }
    tell('D');
    free_all();
    tell('F');
    go_on(size);
    verdict(true);
}

/* ---- Use after free. */

void write_after_free(std::size_t size, const char *variant)
{
    char *block = among_others(size);
    free(block);
    char *again = nullptr;
    if (strcmp(variant, "delayed") == 0)
        go_on(size, 64);
    if (strcmp(variant, "after-reuse") == 0)
        for (int i = 0; i < 64 && again != block; i++) {
            again = static_cast<char *>(malloc(size));
            memset(again, 'v', size);
        }
    tell('S');
    memset(block, 'A', size);
    tell('D');
    bool victim = again == block;
    go_on(size);
    tell('F');
    go_on(size, 100000);
    verdict(victim || strcmp(variant, "after-reuse") != 0);
}

void read_after_free(std::size_t size, const char *variant)
{
    char *block = among_others(size);
    memset(block, 's', size);
    free(block);
    if (strcmp(variant, "delayed") == 0)
        go_on(size, 64);
    tell('S');
    std::size_t seen = 0;
    for (std::size_t i = 0; i < size; i++)
        seen += static_cast<volatile char *>(block)[i] == 's';
    tell('D');
    tell('F');
    verdict(seen > size / 2);
}

/* ---- What is left in memory, and where the next block is. */

void information(std::size_t size, const char *)
{
    char *block = among_others(size);
    memset(block, 's', size);
    free(block);
    tell('S');
    std::size_t seen = 0;
    for (int i = 0; i < 64; i++) {
        char *next = static_cast<char *>(malloc(size));
        std::size_t secret = 0;
        for (std::size_t j = 16; j < size; j++)
            secret += static_cast<volatile char *>(next)[j] == 's';
        seen = secret > seen ? secret : seen;
    }
    tell('D');
    tell('F');
    verdict(seen > size / 4);
}

void predictable_reuse(std::size_t size, const char *variant)
{
    int same = 0;
    among_others(size);
    tell('S');
    for (int i = 0; i < 100; i++) {
        void *block = malloc(size);
        free(block);
        if (strcmp(variant, "after-others") == 0)
            free(malloc(size * 2));
        void *next = malloc(size);
        same += next == block;
        free(next);
    }
    tell('D');
    tell('F');
    verdict(same > 50);
}

/* ---- Mismatches. */

void mismatch(std::size_t size, const char *variant)
{
    void *block = nullptr;
    bool by_new = strncmp(variant, "new", 3) == 0;
    block = by_new ? (strstr(variant, "array") != nullptr ? ::operator new[](size) : ::operator new(size)) : malloc(size);
    tell('S');
    if (strcmp(variant, "new-free") == 0 || strcmp(variant, "new-array-free") == 0)
        free(block);
    else if (strcmp(variant, "malloc-delete") == 0)
        ::operator delete(block);
    else if (strcmp(variant, "new-array-delete") == 0)
        ::operator delete(block);
    else if (strcmp(variant, "new-larger-delete") == 0)
        ::operator delete(block, size * 4);
    else if (strcmp(variant, "new-smaller-delete") == 0)
        ::operator delete(block, size / 4);
    tell('D');
    tell('F');
    go_on(size);
    verdict(true);
}

/* ---- Sizes. */

void zero_size(std::size_t, const char *variant)
{
    char *blocks[8];
    for (char *&block : blocks)
        block = static_cast<char *>(malloc(0));
    tell('S');
    volatile char *p = blocks[3];
    if (p == nullptr)
        _exit(0);
    if (strcmp(variant, "write") == 0)
        p[0] = 'A';
    else
        (void)p[0];
    tell('D');
    for (char *block : blocks)
        free(block);
    tell('F');
    go_on(16);
    verdict(true);
}

void impossible_size(std::size_t size, const char *variant)
{
    volatile std::size_t huge = SIZE_MAX - size;
    void *block = nullptr;
    tell('S');
    if (strcmp(variant, "malloc") == 0)
        block = malloc(huge);
    else if (strcmp(variant, "calloc") == 0)
        block = calloc(huge / 2, 4);
    else if (strcmp(variant, "realloc") == 0)
        block = realloc(malloc(16), huge);
    else if (posix_memalign(&block, 64, huge) != 0)
        block = nullptr;
    tell('D');
    tell('F');
    verdict(block != nullptr);
}

/* A return instruction, called. */
void executable(std::size_t size, const char *)
{
    unsigned char *block = static_cast<unsigned char *>(malloc(size));
#if defined(__x86_64__)
    block[0] = 0xc3;
#else
    const std::uint32_t ret = 0xd65f03c0;
    memcpy(block, &ret, sizeof ret);
    __builtin___clear_cache(reinterpret_cast<char *>(block), reinterpret_cast<char *>(block) + 4);
#endif
    tell('S');
    reinterpret_cast<void (*)()>(block)();
    tell('D');
    tell('F');
    verdict(true);
}

void __attribute__((noinline)) lose(std::size_t size)
{
    for (int i = 0; i < 10; i++)
        memset(malloc(size), 'l', size);
}

void leak(std::size_t size, const char *)
{
    tell('S');
    lose(size);
    char cleared[4096];
    memset(cleared, 0, sizeof cleared);
    __asm__ volatile("" ::"r"(cleared) : "memory");
    tell('D');
    tell('F');
    verdict(true);
}

/* ---- Aligned and resized blocks. */

void aligned_overflow(std::size_t size, const char *variant)
{
    std::size_t alignment = strtoul(variant, nullptr, 10);
    void *block = nullptr;
    void *next = nullptr;
    if (posix_memalign(&block, alignment, size) != 0 || posix_memalign(&next, alignment, size) != 0)
        _exit(98);
    tell('S');
    static_cast<volatile char *>(block)[size] = 'A';
    tell('D');
    free(block);
    free(next);
    tell('F');
    go_on(size);
    verdict(true);
}

void stale_after_realloc(std::size_t size, const char *variant)
{
    char *block = among_others(size);
    char *moved = static_cast<char *>(realloc(block, size * 8));
    kept[15] = moved;
    if (moved == block)
        _exit(0); /* it has not moved: there is no bug */
    tell('S');
    if (strcmp(variant, "write") == 0)
        memset(block, 'A', size);
    else
        free(block);
    tell('D');
    free_all();
    tell('F');
    go_on(size, 100000);
    verdict(true);
}

constexpr std::size_t SMALL = 40, MIDDLE = 5000, LARGE = 300000;

struct Kind {
    const char *name;
    void (*run)(std::size_t size, const char *variant);
    const char *variants; /* with commas between */
    std::size_t sizes[3]; /* 0: no more */
};

const Kind kinds[] = {
    {"double-free", double_free, "immediate,interleaved,delayed,after-reuse,cross-thread,by-realloc", {SMALL, MIDDLE, LARGE}},
    {"invalid-free", invalid_free, "interior-8,interior-16,unaligned,before", {SMALL, MIDDLE, LARGE}},
    {"foreign-free", invalid_free, "stack,global,mapped,far", {SMALL}},
    {"overflow", overflow, "1,8,32,1048576,memcpy-1,memcpy-8,memcpy-32,memcpy-1048576", {SMALL, MIDDLE, LARGE}},
    {"underflow", overflow, "-1,-8,-32,memcpy--8", {SMALL, MIDDLE, LARGE}},
    {"write-after-free", write_after_free, "immediate,delayed,after-reuse", {SMALL, MIDDLE, LARGE}},
    {"read-after-free", read_after_free, "immediate,delayed", {SMALL, MIDDLE, LARGE}},
    {"aligned-overflow", aligned_overflow, "64,4096", {SMALL, MIDDLE, LARGE}},
    {"stale-after-realloc", stale_after_realloc, "write,free", {SMALL, MIDDLE, LARGE}},
    {"mismatch", mismatch, "new-free,malloc-delete,new-array-delete,new-larger-delete,new-smaller-delete", {SMALL, LARGE}},
    {"zero-size", zero_size, "write,read", {1}},
    {"predictable-reuse", predictable_reuse, "at-once,after-others", {SMALL, MIDDLE, LARGE}},
    {"information-left", information, "new-block", {SMALL, MIDDLE, LARGE}},
    {"impossible-size", impossible_size, "malloc,calloc,realloc,memalign", {SMALL}},
    {"executable-heap", executable, "call", {SMALL, MIDDLE, LARGE}},
    {"leak", leak, "lost", {SMALL, MIDDLE, LARGE}},
};

/* The variant after this one; null: it is the last. */
const char *next_variant(const char *at)
{
    const char *comma = strchr(at, ',');
    return comma != nullptr ? comma + 1 : nullptr;
}

bool has_variant(const Kind &kind, const char *variant)
{
    std::size_t length = strlen(variant);
    for (const char *at = kind.variants; at != nullptr; at = next_variant(at))
        if (strncmp(at, variant, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    return false;
}

void print_variants(const Kind &kind, std::size_t size)
{
    for (const char *at = kind.variants; at != nullptr; at = next_variant(at))
        printf("%s %zu %.*s\n", kind.name, size, static_cast<int>(strcspn(at, ",")), at);
}

int list()
{
    for (const Kind &kind : kinds)
        for (std::size_t size : kind.sizes)
            if (size != 0)
                print_variants(kind, size);
    return 0;
}

} // namespace

int main(int count, char **words)
{
    if (count == 2 && strcmp(words[1], "--list") == 0)
        return list();
    if (count != 4)
        return 97;
    for (const Kind &kind : kinds) {
        if (strcmp(kind.name, words[1]) != 0 || !has_variant(kind, words[3]))
            continue;
        kind.run(strtoul(words[2], nullptr, 10), words[3]);
        tell('E');
        return 0;
    }
    return 97;
}
