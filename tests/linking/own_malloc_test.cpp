/*
 * A program that brings malloc, calloc, realloc and free of its own, with hakmem preloaded: all its blocks are its own
 * allocator's, also those that come by way of names that it does not define.
 */
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <new>
#include <string>

namespace {

volatile std::size_t impossible = SIZE_MAX;

constexpr std::size_t ROOM = std::size_t{1} << 20;
alignas(16) char room[ROOM]; /* blocks are cut from here, each after its size, and never reused */
std::size_t used = 0;
int frees = 0;

bool is_own(const void *block)
{
    return block >= room && block < room + ROOM;
}

void check_failed(int line, const char *condition)
{
    std::fprintf(stderr, "own_malloc_test.cpp:%d: check failed: %s\n", line, condition);
    std::abort();
}

#define CHECK(condition) ((condition) ? (void)0 : check_failed(__LINE__, #condition))

} // namespace

extern "C" {

void *malloc(std::size_t size)
{
    const std::size_t bytes = (size + 16 + 15) & ~std::size_t{15};
    if (size > ROOM || bytes > ROOM - used) {
        errno = ENOMEM;
        return nullptr;
    }
    char *block = room + used + 16;
    used += bytes;
    std::memcpy(block - sizeof size, &size, sizeof size);
    return block;
}

void free(void *block)
{
    if (block == nullptr)
        return;
    if (!is_own(block))
        check_failed(__LINE__, "free of a block of this program's allocator");
    frees++;
}

void *calloc(std::size_t count, std::size_t size)
{
    return malloc(count * size); /* fresh memory is zero */
}

void *realloc(void *block, std::size_t size)
{
    void *moved = malloc(size);
    if (block == nullptr || moved == nullptr)
        return moved;
    if (!is_own(block))
        check_failed(__LINE__, "realloc of a block of this program's allocator");
    std::size_t old = 0;
    std::memcpy(&old, static_cast<char *>(block) - sizeof old, sizeof old);
    std::memcpy(moved, block, old < size ? old : size);
    free(block);
    return moved;
}

/* hakmem's, which glibc does not have yet, or not any more. */
void free_sized(void *block, std::size_t size) __attribute__((weak));
void cfree(void *block) __attribute__((weak));
}

int main()
{
    CHECK(dlsym(RTLD_DEFAULT, "hak_version") != nullptr); /* preloaded */

    char *text = strdup("strdup calls malloc");
    CHECK(is_own(text));
    free(text);

    void *block = reallocarray(nullptr, 10, 10);
    CHECK(is_own(block));
    block = reallocarray(block, 100, 10);
    CHECK(is_own(block));
    CHECK(reallocarray(block, impossible, 2) == nullptr && errno == ENOMEM);
    CHECK(free_sized != nullptr && cfree != nullptr);
    const int before = frees;
    free_sized(block, 1000);
    cfree(malloc(8));
    CHECK(frees == before + 2);

    void *(*volatile plain_new)(std::size_t) = ::operator new;
    void (*volatile plain_delete)(void *) noexcept = ::operator delete;
    block = plain_new(100);
    CHECK(is_own(block));
    plain_delete(block);
    CHECK(frees == before + 3);
    std::string longer(1000, 'x');
    CHECK(is_own(longer.data()));

    /* By its own names, hakmem is there nevertheless. */
    auto hak_malloc = reinterpret_cast<void *(*)(std::size_t)>(dlsym(RTLD_DEFAULT, "hak_malloc"));
    auto hak_free = reinterpret_cast<void (*)(void *)>(dlsym(RTLD_DEFAULT, "hak_free"));
    CHECK(hak_malloc != nullptr && hak_free != nullptr);
    block = hak_malloc(100);
    CHECK(block != nullptr && !is_own(block));
    hak_free(block);
    std::puts("own malloc: ok");
    return 0;
}
