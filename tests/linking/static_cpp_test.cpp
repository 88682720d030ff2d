/* A C++ program linked with libhakmem.a: malloc and operator new are hakmem's. */
#include "hakmem.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

void *(*volatile plain_malloc)(std::size_t) = std::malloc;
void *(*volatile plain_new)(std::size_t) = ::operator new;
volatile std::size_t too_large = PTRDIFF_MAX;

int failed(const char *what)
{
    std::fprintf(stderr, "static C++: %s\n", what);
    return 1;
}

} // namespace

int main()
{
    void *from_malloc = plain_malloc(100);
    void *from_new = plain_new(100);
    if (hak_malloc_usable_size(from_malloc) != 112 || hak_malloc_usable_size(from_new) != 112) {
        return failed("malloc or operator new is not hakmem's");
    }
    std::free(from_malloc);
    ::operator delete(from_new);

    bool thrown = false;
    try {
        plain_new(too_large);
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    if (!thrown) {
        return failed("operator new does not throw");
    }

    std::vector<std::unique_ptr<std::string>> strings;
    std::thread([&strings] {
        for (int i = 0; i < 10000; i++) {
            strings.push_back(std::make_unique<std::string>(std::to_string(i) + std::string(100, 'y')));
        }
    }).join();
    if (hak_malloc_usable_size(strings.data()) < strings.size() * sizeof strings[0]) {
        return failed("a vector does not use hakmem");
    }
    strings.clear();
    std::puts("static C++: ok");
    return 0;
}
