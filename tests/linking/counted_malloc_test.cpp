/*
 * A program that counts the calls of malloc, and passes them on; free it leaves to hakmem, which is preloaded. What operator new
 * asks that malloc for is not always what the program asked new for, and no delete is taken to be wrong for it.
 */
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <new>

extern "C" void *hak_malloc(std::size_t size) noexcept __attribute__((weak));

namespace {

int calls = 0;

} // namespace

extern "C" void *malloc(std::size_t size)
{
    calls++;
    return hak_malloc(size);
}

int main()
{
    const int before = calls;
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{100}, std::size_t{100000}}) {
        void *block = ::operator new(size);
        ::operator delete(block, size);
        block = ::operator new[](size);
        ::operator delete[](block, size);
        for (std::size_t alignment = 32; alignment <= 4096; alignment *= 2) {
            block = ::operator new(size, std::align_val_t{alignment});
            ::operator delete(block, size, std::align_val_t{alignment});
            block = ::operator new[](size, std::align_val_t{alignment});
            ::operator delete[](block, size, std::align_val_t{alignment});
        }
    }
    if (calls < before + 8) {
        std::puts("counted_malloc: operator new does not call malloc");
        return 1;
    }
    std::puts("counted_malloc: ok");
    return 0;
}
