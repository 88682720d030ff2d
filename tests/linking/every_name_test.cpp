/*
 * Two allocators in one process, as preloaded libraries or as a library that the program needs: whichever serves it,
 * every block goes back to where it came from. Only names that glibc makes of others, and those that all allocators have.
 *
 *   every_name USABLE    what malloc_usable_size says of 100000 bytes: which allocator serves this process
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

void check_failed(int line, const char *condition)
{
    std::fprintf(stderr, "every_name_test.cpp:%d: check failed: %s\n", line, condition);
    std::abort();
}

#define CHECK(condition) ((condition) ? (void)0 : check_failed(__LINE__, #condition))

void *filled(void *block, std::size_t size)
{
    CHECK(block != nullptr && malloc_usable_size(block) >= size);
    std::memset(block, 0x5a, size);
    return block;
}

void plain_names(std::size_t size)
{
    void *block = filled(std::malloc(size), size);
    block = filled(std::realloc(block, size * 3), size * 3);
    block = filled(reallocarray(block, 2, size), size * 2);
    std::free(block);
    std::free(filled(std::calloc(3, size), size * 3));
    std::free(filled(reallocarray(nullptr, 3, size), size * 3));
    std::free(filled(strdup(std::string(size, 'x').c_str()), size));
}

void aligned_names(std::size_t size)
{
    void *block = nullptr;
    CHECK(posix_memalign(&block, 64, size) == 0 && reinterpret_cast<std::uintptr_t>(block) % 64 == 0);
    std::free(filled(block, size));
    std::free(filled(aligned_alloc(128, (size + 127) / 128 * 128), size));
    std::free(filled(memalign(256, size), size));
    std::free(filled(valloc(size), size));
}

void operators(std::size_t size)
{
    const std::align_val_t alignment{512};
    ::operator delete(filled(::operator new(size), size));
    ::operator delete[](filled(::operator new[](size), size), size);
    ::operator delete(filled(::operator new(size, std::nothrow), size), std::nothrow);
    ::operator delete(filled(::operator new(size, alignment), size), alignment);
    std::map<int, std::vector<std::string>> tree;
    for (int i = 0; i < 100; i++)
        tree[i % 10].emplace_back(size, 'y');
}

void work()
{
    for (std::size_t size = 1; size < 300000; size = size * 5 / 4 + 1) {
        plain_names(size);
        aligned_names(size);
        operators(size);
    }
}

/* The C library's own buffers, which the program frees. */
void library_blocks()
{
    char *line = nullptr;
    std::size_t room = 0;
    std::FILE *file = std::fopen("/proc/self/maps", "r");
    CHECK(file != nullptr);
    while (getline(&line, &room, file) > 0)
        CHECK(line != nullptr);
    std::free(line);
    std::fclose(file);
    char *text = nullptr;
    CHECK(asprintf(&text, "%d", 42) == 2);
    std::free(text);
    std::free(realpath("/proc/self/exe", nullptr));
}

} // namespace

int main(int, char **arguments)
{
    void *volatile block = std::malloc(100000);
    const std::size_t usable = malloc_usable_size(block);
    std::free(block);
    std::printf("every name: 100000 bytes have %zu\n", usable);
    std::fflush(stdout);
    CHECK(usable == std::strtoul(arguments[1], nullptr, 10));
    work();
    std::thread(work).join();
    library_blocks();
    malloc_trim(0);
    std::puts("every name: ok");
    return 0;
}
