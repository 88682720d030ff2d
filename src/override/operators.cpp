/* Every replaceable operator new and delete, made of malloc and free as the linker finds them: a program that brings
 * its own gets its operators from us, and they must be served by it, as libstdc++'s would be.
 *
 * The library must not need libstdc++: what these use of it is referenced weakly, and looked up when it is needed in a
 * process that loaded libstdc++ after us. */
#include <cstddef>
#include <cstdlib>
#include <new>

#include "hakmem.h"
#include "override/late_lookup.h"
#include "override/linked.h"

__asm__(".weak __gxx_personality_v0\n.weak __cxa_begin_catch\n.weak __cxa_end_catch\n"
        ".weak __cxa_call_terminate\n.weak _Unwind_Resume\n.weak _ZSt9terminatev\n");

extern "C" void __gxx_personality_v0() __attribute__((weak));

/* NOLINTNEXTLINE(cert-dcl58-cpp): libstdc++'s own two, declared again so that they are weak. */
namespace std {
[[noreturn]] void __throw_bad_alloc() __attribute__((weak));
[[gnu::weak]] new_handler get_new_handler() noexcept;
} // namespace std

namespace {

/* Which of the two. */
enum class Form { one, array };

/* Plain new, which says 1, promises what malloc does: 16 from 16 bytes on, else 8. */
template <Form form> void *allocate(std::size_t size, std::size_t alignment)
{
    if (alignment <= alignof(void *))
        return form == Form::one ? linked_new(size) : linked_new_array(size);
    return form == Form::one ? linked_new_aligned(alignment, size) : linked_new_array_aligned(alignment, size);
}

/* A function of libstdc++: as it was when we were loaded, or of the one loaded since. Null: there is none. */
template <typename Function> Function *find(Function *at_load, const char *name)
{
    if (at_load != nullptr || &late_lookup == nullptr)
        return at_load;
    return reinterpret_cast<Function *>(late_lookup(name));
}

/* [new.delete.single]: calls the handler until there is memory, or throws bad_alloc when there is none. */
template <Form form> [[gnu::noinline, gnu::cold]] void *allocate_with_handler(std::size_t size, std::size_t alignment)
{
    const auto get_new_handler = find(&std::get_new_handler, "_ZSt15get_new_handlerv");
    const auto throw_bad_alloc = find(&std::__throw_bad_alloc, "_ZSt17__throw_bad_allocv");
    for (;;) {
        std::new_handler handler = get_new_handler != nullptr ? get_new_handler() : nullptr;
        if (handler == nullptr || (alignment & (alignment - 1)) != 0) { /* no handler makes an alignment valid */
            if (throw_bad_alloc != nullptr)
                throw_bad_alloc();
            std::abort();
        }
        handler();
        if (void *block = allocate<form>(size, alignment))
            return block;
    }
}

template <Form form = Form::one> void *allocate_or_throw(std::size_t size, std::size_t alignment)
{
    void *block = allocate<form>(size, alignment);
    return __builtin_expect(block != nullptr, 1) ? block : allocate_with_handler<form>(size, alignment);
}

template <Form form = Form::one> void *allocate_or_null(std::size_t size, std::size_t alignment) noexcept
{
    if (void *block = allocate<form>(size, alignment))
        return block;
    /* Without it when we were loaded, nothing can be caught here, and a handler might throw. */
    if (&__gxx_personality_v0 == nullptr)
        return nullptr;
    try {
        return allocate_with_handler<form>(size, alignment);
    } catch (...) {
        return nullptr;
    }
}

/* What the program's own operator says, which may throw. */
template <typename Function, typename... Arguments> void *of_others(Function *others, Arguments... arguments) noexcept
{
    try {
        void *block = others(arguments...); /* cppcheck would take what is returned for an integer */
        return block;
    } catch (...) {
        return nullptr;
    }
}

template <Form form> void *plain_or_null(std::size_t size) noexcept
{
    linked_new_function *others = linked_others_new(form == Form::array);
    return others != nullptr ? of_others(others, size) : allocate_or_null<form>(size, 1);
}

template <Form form> void *aligned_or_null(std::size_t size, std::size_t alignment) noexcept
{
    linked_new_aligned_function *others = linked_others_new_aligned(form == Form::array);
    return others != nullptr ? of_others(others, size, alignment) : allocate_or_null<form>(size, alignment);
}

std::size_t bytes(std::align_val_t alignment)
{
    return static_cast<std::size_t>(alignment);
}

} // namespace

void *operators_new_without_memory(std::size_t size)
{
    return allocate_with_handler<Form::one>(size, 1);
}

void *operators_new_array_without_memory(std::size_t size)
{
    return allocate_with_handler<Form::array>(size, 1);
}

#define EXPORT HAK_EXPORT

EXPORT void *operator new(std::size_t n) { return linked_new_or_throw(n); }
EXPORT void *operator new[](std::size_t n) { return linked_new_array_or_throw(n); }
EXPORT void *operator new(std::size_t n, std::align_val_t a) { return allocate_or_throw(n, bytes(a)); }
EXPORT void *operator new[](std::size_t n, std::align_val_t a)
{
    if (linked_new_aligned_function *others = linked_others_new_aligned(false))
        return others(n, bytes(a));
    return allocate_or_throw<Form::array>(n, bytes(a));
}
EXPORT void *operator new(std::size_t n, const std::nothrow_t &) noexcept { return plain_or_null<Form::one>(n); }
EXPORT void *operator new[](std::size_t n, const std::nothrow_t &) noexcept { return plain_or_null<Form::array>(n); }
EXPORT void *operator new(std::size_t n, std::align_val_t a, const std::nothrow_t &) noexcept
{
    return aligned_or_null<Form::one>(n, bytes(a));
}
EXPORT void *operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t &) noexcept
{
    return aligned_or_null<Form::array>(n, bytes(a));
}

EXPORT void operator delete(void *p) noexcept { linked_delete(p); }
EXPORT void operator delete[](void *p) noexcept { linked_delete_array(p); }
EXPORT void operator delete(void *p, std::size_t n) noexcept { linked_delete_sized(p, n); }
EXPORT void operator delete[](void *p, std::size_t n) noexcept { linked_delete_array_sized(p, n); }
EXPORT void operator delete(void *p, const std::nothrow_t &) noexcept { linked_delete_sized(p, LINKED_SIZE_UNKNOWN); }
EXPORT void operator delete[](void *p, const std::nothrow_t &) noexcept { linked_delete_array_sized(p, LINKED_SIZE_UNKNOWN); }
EXPORT void operator delete(void *p, std::align_val_t) noexcept { linked_delete(p); }
EXPORT void operator delete[](void *p, std::align_val_t a) noexcept { linked_delete_array_aligned(p, bytes(a)); }
EXPORT void operator delete(void *p, std::size_t n, std::align_val_t a) noexcept { linked_delete_aligned(p, bytes(a), n); }
EXPORT void operator delete[](void *p, std::size_t n, std::align_val_t a) noexcept
{
    linked_delete_array_aligned_sized(p, bytes(a), n);
}
EXPORT void operator delete(void *p, std::align_val_t a, const std::nothrow_t &) noexcept
{
    linked_delete_aligned(p, bytes(a), LINKED_SIZE_UNKNOWN);
}
EXPORT void operator delete[](void *p, std::align_val_t a, const std::nothrow_t &) noexcept
{
    linked_delete_array_aligned_sized(p, bytes(a), LINKED_SIZE_UNKNOWN);
}

/* For linked.c, which compares: who has taken the place of those that others are made of? */
#define ALSO(own, name) __asm__(".globl " own "\n.hidden " own "\n.set " own ", " name)
ALSO("own_new", "_Znwm");
ALSO("own_new_array", "_Znam");
ALSO("own_new_aligned", "_ZnwmSt11align_val_t");
ALSO("own_new_array_aligned", "_ZnamSt11align_val_t");
ALSO("own_delete", "_ZdlPv");
ALSO("own_delete_array", "_ZdaPv");
ALSO("own_delete_aligned", "_ZdlPvSt11align_val_t");
ALSO("own_delete_array_aligned", "_ZdaPvSt11align_val_t");
