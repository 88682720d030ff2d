/*
 * A program that brings some of the operators of C++ and not those that are made of them, with hakmem: the others call its own, as
 * libstdc++'s would ([new.delete]). Its blocks lie behind a header, so that nobody else can free them.
 *
 * It brings plain new and delete, and those with an alignment; with OWN_ARRAYS those of arrays too.
 */
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include <dlfcn.h>
#include <malloc.h>

#include "every_operator.h"

namespace {

enum Kind : std::uint64_t { PLAIN = 0x706c61696e, ALIGNED = 0x616c69676e, ARRAY = 0x6172726179, ALIGNED_ARRAY = 0x626f7468 };

struct Header {
    void *block; /* what malloc has returned */
    std::uint64_t kind;
};

bool is_full = false;
unsigned made[4];
unsigned unmade[4];

void check_failed(int line, const char *condition)
{
    std::fprintf(stderr, "own_operators_test.cpp:%d: check failed: %s\n", line, condition);
    std::abort();
}

#define CHECK(condition) ((condition) ? (void)0 : check_failed(__LINE__, #condition))

unsigned index_of(Kind kind)
{
    return kind == PLAIN ? 0 : kind == ALIGNED ? 1 : kind == ARRAY ? 2 : 3;
}

void *make(std::size_t size, std::size_t alignment, Kind kind)
{
    if (is_full)
        throw std::bad_alloc();
    void *block = std::malloc(size + sizeof(Header) + alignment);
    if (block == nullptr)
        std::abort();
    std::uintptr_t at = (reinterpret_cast<std::uintptr_t>(block) + sizeof(Header) + alignment - 1) & ~(alignment - 1);
    *reinterpret_cast<Header *>(at - sizeof(Header)) = {block, kind};
    made[index_of(kind)]++;
    return reinterpret_cast<void *>(at);
}

void unmake(void *p, Kind kind)
{
    if (p == nullptr)
        return;
    Header *header = reinterpret_cast<Header *>(p) - 1;
    if (header->kind != kind)
        check_failed(__LINE__, "what is deleted is of another operator new");
    header->kind = 0;
    unmade[index_of(kind)]++;
    std::free(header->block);
}

} // namespace

void *operator new(std::size_t size) { return make(size, 16, PLAIN); }
void operator delete(void *p) noexcept { unmake(p, PLAIN); }
void *operator new(std::size_t size, align_val_t alignment) { return make(size, static_cast<std::size_t>(alignment), ALIGNED); }
void operator delete(void *p, align_val_t) noexcept { unmake(p, ALIGNED); }
#ifdef OWN_ARRAYS
void *operator new[](std::size_t size) { return make(size, 16, ARRAY); }
void operator delete[](void *p) noexcept { unmake(p, ARRAY); }
void *operator new[](std::size_t size, align_val_t alignment) { return make(size, static_cast<std::size_t>(alignment), ALIGNED_ARRAY); }
void operator delete[](void *p, align_val_t) noexcept { unmake(p, ALIGNED_ARRAY); }
constexpr Kind OF_ARRAYS = ARRAY;
constexpr Kind OF_ALIGNED_ARRAYS = ALIGNED_ARRAY;
#else
constexpr Kind OF_ARRAYS = PLAIN;
constexpr Kind OF_ALIGNED_ARRAYS = ALIGNED;
#endif

namespace {

/* 100 bytes are a class of 112; check mode and the hardened library say what was asked for. And what the program has not brought comes
 * from where malloc does. */
void hakmem_serves()
{
    void *(*volatile plain_malloc)(std::size_t) = std::malloc;
    void *block = plain_malloc(100);
    std::size_t usable = malloc_usable_size(block);
    CHECK(usable == 112 || usable == 100);
    std::free(block);
    Dl_info of_malloc;
    Dl_info of_delete;
    CHECK(dladdr(reinterpret_cast<void *>(plain_malloc), &of_malloc) != 0);
    CHECK(dladdr(reinterpret_cast<void *>(delete_array_sized), &of_delete) != 0);
    CHECK(of_malloc.dli_fbase == of_delete.dli_fbase);
}

/* Each new with each delete of its kind; which of the program's own serves it. */
void all_are_served_by_the_programs(std::size_t n)
{
    const align_val_t a{64};
    const unsigned plain = made[index_of(PLAIN)];
    delete_plain(new_plain(n));
    delete_sized(new_plain(n), n);
    delete_nothrow(new_nothrow(n, std::nothrow), std::nothrow);
    CHECK(made[index_of(PLAIN)] == plain + 3);

    const unsigned arrays = made[index_of(OF_ARRAYS)];
    delete_array(new_array(n));
    delete_array_sized(new_array(n), n);
    delete_array_nothrow(new_array_nothrow(n, std::nothrow), std::nothrow);
    CHECK(made[index_of(OF_ARRAYS)] == arrays + 3);

    const unsigned aligned = made[index_of(ALIGNED)];
    delete_aligned(new_aligned(n, a), a);
    delete_aligned_sized(new_aligned(n, a), n, a);
    delete_aligned_nothrow(new_aligned_nothrow(n, a, std::nothrow), a, std::nothrow);
    CHECK(made[index_of(ALIGNED)] == aligned + 3);

    const unsigned aligned_arrays = made[index_of(OF_ALIGNED_ARRAYS)];
    delete_array_aligned(new_array_aligned(n, a), a);
    delete_array_aligned_sized(new_array_aligned(n, a), n, a);
    delete_array_aligned_nothrow(new_array_aligned_nothrow(n, a, std::nothrow), a, std::nothrow);
    CHECK(made[index_of(OF_ALIGNED_ARRAYS)] == aligned_arrays + 3);
}

void nothrow_forms_catch_what_the_programs_throw()
{
    is_full = true;
    CHECK(new_nothrow(10, std::nothrow) == nullptr && new_array_nothrow(10, std::nothrow) == nullptr);
    CHECK(new_aligned_nothrow(10, align_val_t{64}, std::nothrow) == nullptr);
    CHECK(new_array_aligned_nothrow(10, align_val_t{64}, std::nothrow) == nullptr);
    bool caught = false;
    try {
        (void)new_array(10);
    } catch (const std::bad_alloc &) {
        caught = true;
    }
    is_full = false;
    CHECK(caught);
}

struct alignas(64) Wide {
    char bytes[192];
};

} // namespace

int main()
{
    hakmem_serves();
    for (std::size_t n = 1; n < 100000; n = n * 3 + 1)
        all_are_served_by_the_programs(n);
    nothrow_forms_catch_what_the_programs_throw();
    {
        std::vector<std::unique_ptr<int[]>> arrays;
        for (std::size_t i = 1; i < 500; i++)
            arrays.push_back(std::make_unique<int[]>(i));
        auto wide = std::make_unique<Wide[]>(9);
        CHECK(reinterpret_cast<std::uintptr_t>(wide.get()) % alignof(Wide) == 0);
    }
    for (unsigned kind = 0; kind < 4; kind++)
        CHECK(made[kind] == unmade[kind]);
    std::puts("own operators: ok");
    return 0;
}
