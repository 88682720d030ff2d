/* Every replaceable operator new and delete. The library must not need libstdc++: what these use of it is
 * referenced weakly, and is there whenever a program can call them. */
#include <cstddef>
#include <cstdlib>
#include <new>

#include "hakmem.h"

__asm__(".weak __gxx_personality_v0\n.weak __cxa_begin_catch\n.weak __cxa_end_catch\n"
        ".weak __cxa_call_terminate\n.weak _Unwind_Resume\n");

namespace std {
[[noreturn]] void __throw_bad_alloc() __attribute__((weak));
[[gnu::weak]] new_handler get_new_handler() noexcept;
} // namespace std

namespace {

void *allocate(std::size_t size, std::size_t alignment)
{
    return alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__ ? hak_malloc(size) : hak_memalign(alignment, size);
}

/* [new.delete.single]: calls the handler until there is memory, or throws bad_alloc when there is none. */
[[gnu::noinline, gnu::cold]] void *allocate_with_handler(std::size_t size, std::size_t alignment)
{
    for (;;) {
        std::new_handler handler = &std::get_new_handler != nullptr ? std::get_new_handler() : nullptr;
        if (handler == nullptr) {
            if (&std::__throw_bad_alloc == nullptr)
                std::abort();
            std::__throw_bad_alloc();
        }
        handler();
        if (void *block = allocate(size, alignment))
            return block;
    }
}

void *allocate_or_throw(std::size_t size, std::size_t alignment)
{
    void *block = allocate(size, alignment);
    return __builtin_expect(block != nullptr, 1) ? block : allocate_with_handler(size, alignment);
}

void *allocate_or_null(std::size_t size, std::size_t alignment) noexcept
{
    if (void *block = allocate(size, alignment))
        return block;
    try {
        return allocate_with_handler(size, alignment);
    } catch (...) {
        return nullptr;
    }
}

std::size_t bytes(std::align_val_t alignment)
{
    return static_cast<std::size_t>(alignment);
}

} // namespace

#define EXPORT HAK_EXPORT

EXPORT void *operator new(std::size_t n) { return allocate_or_throw(n, 1); }
EXPORT void *operator new[](std::size_t n) { return allocate_or_throw(n, 1); }
EXPORT void *operator new(std::size_t n, std::align_val_t a) { return allocate_or_throw(n, bytes(a)); }
EXPORT void *operator new[](std::size_t n, std::align_val_t a) { return allocate_or_throw(n, bytes(a)); }
EXPORT void *operator new(std::size_t n, const std::nothrow_t &) noexcept { return allocate_or_null(n, 1); }
EXPORT void *operator new[](std::size_t n, const std::nothrow_t &) noexcept { return allocate_or_null(n, 1); }
EXPORT void *operator new(std::size_t n, std::align_val_t a, const std::nothrow_t &) noexcept
{
    return allocate_or_null(n, bytes(a));
}
EXPORT void *operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t &) noexcept
{
    return allocate_or_null(n, bytes(a));
}

EXPORT void operator delete(void *p) noexcept { hak_free(p); }
EXPORT void operator delete[](void *p) noexcept { hak_free(p); }
EXPORT void operator delete(void *p, std::size_t) noexcept { hak_free(p); }
EXPORT void operator delete[](void *p, std::size_t) noexcept { hak_free(p); }
EXPORT void operator delete(void *p, std::align_val_t) noexcept { hak_free(p); }
EXPORT void operator delete[](void *p, std::align_val_t) noexcept { hak_free(p); }
EXPORT void operator delete(void *p, std::size_t, std::align_val_t) noexcept { hak_free(p); }
EXPORT void operator delete[](void *p, std::size_t, std::align_val_t) noexcept { hak_free(p); }
EXPORT void operator delete(void *p, const std::nothrow_t &) noexcept { hak_free(p); }
EXPORT void operator delete[](void *p, const std::nothrow_t &) noexcept { hak_free(p); }
EXPORT void operator delete(void *p, std::align_val_t, const std::nothrow_t &) noexcept { hak_free(p); }
EXPORT void operator delete[](void *p, std::align_val_t, const std::nothrow_t &) noexcept { hak_free(p); }
