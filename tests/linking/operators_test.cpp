/*
 * Every operator new and delete of C++17, served by hakmem: linked with the shared library, preloaded, and
 * linked statically. (The standard: 17.6.3; hakmem's own promise: one heap with malloc.)
 *
 * Calls go through volatile pointers, since a compiler may remove pairs of new and delete.
 */
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "every_operator.h"

namespace {

void check_failed(int line, const char *condition)
{
    std::fprintf(stderr, "operators_test.cpp:%d: check failed: %s\n", line, condition);
    std::abort();
}

#define CHECK(condition) ((condition) ? (void)0 : check_failed(__LINE__, #condition))

void *(*volatile plain_malloc)(std::size_t) = std::malloc;
void (*volatile plain_free)(void *) = std::free;

/* Too large for any allocator. */
volatile std::size_t too_large = PTRDIFF_MAX;

void *used(void *block, std::size_t size)
{
    CHECK(block != nullptr);
    CHECK(malloc_usable_size(block) >= size);
    std::memset(block, 0x5a, size);
    return block;
}

void hakmem_serves_new()
{
    void *block = new_plain(100);
    std::size_t usable = malloc_usable_size(block);
    CHECK(usable == 112 || usable == 100); /* the class of 100 bytes; what was asked for, in the hardened library */
    delete_plain(block);
}

void every_pair_works()
{
    for (std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{24}, std::size_t{5000}, std::size_t{100000}}) {
        delete_plain(used(new_plain(size), size));
        delete_sized(used(new_plain(size), size), size);
        delete_nothrow(used(new_nothrow(size, std::nothrow), size), std::nothrow);
        delete_plain(used(new_nothrow(size, std::nothrow), size));
        delete_array(used(new_array(size), size));
        delete_array_sized(used(new_array(size), size), size);
        delete_array_nothrow(used(new_array_nothrow(size, std::nothrow), size), std::nothrow);
        /* one heap with malloc */
        plain_free(used(new_plain(size), size));
        delete_plain(used(plain_malloc(size), size));
    }
    delete_plain(nullptr);
    delete_array(nullptr);
    delete_sized(nullptr, 8);
    delete_array_sized(nullptr, 8);
    delete_aligned(nullptr, align_val_t{64});
    delete_array_aligned_sized(nullptr, 64, align_val_t{64});
}

void *aligned(void *block, std::size_t size, std::size_t alignment)
{
    CHECK(reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
    return used(block, size);
}

void every_aligned_pair_works()
{
    for (std::size_t alignment = 1; alignment <= (std::size_t{4} << 20); alignment *= 2) {
        for (std::size_t size : {std::size_t{0}, std::size_t{8}, std::size_t{40}, std::size_t{3000}, std::size_t{70000}}) {
            const align_val_t value{alignment};
            delete_aligned(aligned(new_aligned(size, value), size, alignment), value);
            delete_aligned_sized(aligned(new_aligned(size, value), size, alignment), size, value);
            delete_aligned_nothrow(aligned(new_aligned_nothrow(size, value, std::nothrow), size, alignment), value,
                                   std::nothrow);
            delete_array_aligned(aligned(new_array_aligned(size, value), size, alignment), value);
            delete_array_aligned_sized(aligned(new_array_aligned(size, value), size, alignment), size, value);
            delete_array_aligned_nothrow(aligned(new_array_aligned_nothrow(size, value, std::nothrow), size, alignment),
                                         value, std::nothrow);
        }
    }
}

template <typename Function> bool throws_bad_alloc(Function function)
{
    try {
        function();
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

void without_a_handler_new_throws()
{
    CHECK(throws_bad_alloc([] { new_plain(too_large); }));
    CHECK(throws_bad_alloc([] { new_array(too_large); }));
    CHECK(throws_bad_alloc([] { new_aligned(too_large, align_val_t{64}); }));
    CHECK(throws_bad_alloc([] { new_array_aligned(too_large, align_val_t{64}); }));
    CHECK(throws_bad_alloc([] { new_plain(SIZE_MAX - too_large % 8); }));
    CHECK(new_nothrow(too_large, std::nothrow) == nullptr);
    CHECK(new_array_nothrow(too_large, std::nothrow) == nullptr);
    CHECK(new_aligned_nothrow(too_large, align_val_t{64}, std::nothrow) == nullptr);
    CHECK(new_array_aligned_nothrow(too_large, align_val_t{64}, std::nothrow) == nullptr);
}

int handler_calls;

/* Gives up at the third call by removing itself, which is one of the things a handler may do. */
void handler_that_gives_up()
{
    if (++handler_calls == 3) {
        std::set_new_handler(nullptr);
    }
}

struct special : std::bad_alloc {
};

void handler_that_throws()
{
    ++handler_calls;
    throw special{};
}

void the_handler_is_called_until_it_gives_up()
{
    using call = bool (*)();
    const call calls[] = {
        [] { return throws_bad_alloc([] { new_plain(too_large); }); },
        [] { return throws_bad_alloc([] { new_array(too_large); }); },
        [] { return throws_bad_alloc([] { new_aligned(too_large, align_val_t{64}); }); },
        [] { return throws_bad_alloc([] { new_array_aligned(too_large, align_val_t{64}); }); },
        [] { return new_nothrow(too_large, std::nothrow) == nullptr; },
        [] { return new_array_nothrow(too_large, std::nothrow) == nullptr; },
        [] { return new_aligned_nothrow(too_large, align_val_t{64}, std::nothrow) == nullptr; },
        [] { return new_array_aligned_nothrow(too_large, align_val_t{64}, std::nothrow) == nullptr; },
    };
    for (call fails_as_it_should : calls) {
        handler_calls = 0;
        std::set_new_handler(handler_that_gives_up);
        CHECK(fails_as_it_should());
        CHECK(handler_calls == 3);
        CHECK(std::get_new_handler() == nullptr);
    }
    /* None makes an alignment valid. */
    std::set_new_handler([] { ++handler_calls; });
    CHECK(throws_bad_alloc([] { new_aligned(64, align_val_t{48}); }));
    for (std::size_t wrong : {0, 3, 5, 6, 7, 48}) {
        CHECK(new_aligned_nothrow(64, align_val_t{wrong}, std::nothrow) == nullptr);
        CHECK(new_array_aligned_nothrow(64, align_val_t{wrong}, std::nothrow) == nullptr);
    }
    std::set_new_handler(nullptr);
}

void what_the_handler_throws_arrives()
{
    handler_calls = 0;
    std::set_new_handler(handler_that_throws);
    bool arrived = false;
    try {
        new_plain(too_large);
    } catch (const special &) {
        arrived = true;
    }
    CHECK(arrived && handler_calls == 1);

    /* A nothrow form turns it into nullptr. */
    CHECK(new_nothrow(too_large, std::nothrow) == nullptr);
    CHECK(new_array_nothrow(too_large, std::nothrow) == nullptr);
    CHECK(new_aligned_nothrow(too_large, align_val_t{64}, std::nothrow) == nullptr);
    CHECK(new_array_aligned_nothrow(too_large, align_val_t{64}, std::nothrow) == nullptr);
    CHECK(handler_calls == 5);
    std::set_new_handler(nullptr);
}

void delete_keeps_errno()
{
    void *blocks[] = {new_plain(100), new_array(100), new_aligned(100, align_val_t{64}), new_plain(1 << 20)};
    errno = 12345;
    delete_plain(blocks[0]);
    delete_array(blocks[1]);
    delete_aligned(blocks[2], align_val_t{64});
    delete_plain(blocks[3]);
    CHECK(errno == 12345);
}

/* The library at work: containers, strings, exceptions and threads. */
void containers_work()
{
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++) {
        threads.emplace_back([] {
            std::vector<std::string> strings;
            for (int i = 0; i < 20000; i++) {
                strings.push_back(std::string(static_cast<std::size_t>(i % 300), 'x') + std::to_string(i));
                if (i % 1000 == 999) {
                    try {
                        throw std::runtime_error(strings.back());
                    } catch (const std::runtime_error &error) {
                        CHECK(error.what() == strings.back());
                    }
                }
            }
            for (int i = 0; i < 20000; i++) {
                CHECK(strings[static_cast<std::size_t>(i)].size() >= static_cast<std::size_t>(i % 300));
            }
        });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
}

} // namespace

int main()
{
    hakmem_serves_new();
    every_pair_works();
    every_aligned_pair_works();
    without_a_handler_new_throws();
    the_handler_is_called_until_it_gives_up();
    what_the_handler_throws_arrives();
    delete_keeps_errno();
    containers_work();
    std::puts("operators: ok");
    return 0;
}
