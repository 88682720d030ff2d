/* Every replaceable operator new and delete, made of malloc and free as the linker finds them: a program that brings
 * its own gets its operators from us, and they must be served by it, as libstdc++'s would be.
 *
 * In the archive they are an object of their own: only programs that ask for an operator have a C++ library. */
#include <cstddef>
#include <new>

#include "hakmem.h"
#include "override/linked.h"
#include "override/operators/runtime.h"

namespace {

/* Which of the two. */
enum class Form { one, array };

constexpr bool is_alignment(std::size_t number)
{
    return number != 0 && (number & (number - 1)) == 0;
}

/* Plain new, which says 1, promises what malloc does: 16 from 16 bytes on, else 8. */
template <Form form> void *allocate(std::size_t size, std::size_t alignment)
{
    if (alignment <= LINKED_PLAIN_ALIGNMENT && is_alignment(alignment))
        return form == Form::one ? hak_linked_new(size) : hak_linked_new_array(size);
    return form == Form::one ? hak_linked_new_aligned(alignment, size) : hak_linked_new_array_aligned(alignment, size);
}

/* [new.delete.single]: calls the handler until there is memory, or throws bad_alloc when there is none. */
template <Form form> [[gnu::noinline, gnu::cold]] void *allocate_with_handler(std::size_t size, std::size_t alignment)
{
    for (;;) {
        std::new_handler handler = runtime::new_handler();
        if (handler == nullptr || !is_alignment(alignment)) /* no handler makes an alignment valid */
            runtime::throw_bad_alloc();
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
    if (!runtime::can_catch()) /* and a handler might throw */
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
    linked_new_function *others = hak_linked_others_new(form == Form::array);
    return others != nullptr ? of_others(others, size) : allocate_or_null<form>(size, 1);
}

template <Form form> void *aligned_or_null(std::size_t size, std::size_t alignment) noexcept
{
    linked_new_aligned_function *others = hak_linked_others_new_aligned(form == Form::array);
    return others != nullptr ? of_others(others, size, alignment) : allocate_or_null<form>(size, alignment);
}

std::size_t bytes(std::align_val_t alignment)
{
    return static_cast<std::size_t>(alignment);
}

} // namespace

void *hak_linked_new_without_memory(std::size_t size)
{
    return allocate_with_handler<Form::one>(size, 1);
}

void *hak_linked_new_array_without_memory(std::size_t size)
{
    return allocate_with_handler<Form::array>(size, 1);
}

#define EXPORT HAK_EXPORT

EXPORT void *operator new(std::size_t n) { return hak_linked_new_or_throw(n); }
EXPORT void *operator new[](std::size_t n) { return hak_linked_new_array_or_throw(n); }
EXPORT void *operator new(std::size_t n, std::align_val_t a) { return allocate_or_throw(n, bytes(a)); }
EXPORT void *operator new[](std::size_t n, std::align_val_t a)
{
    if (linked_new_aligned_function *others = hak_linked_others_new_aligned(false))
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

EXPORT void operator delete(void *p) noexcept { hak_linked_delete(p); }
EXPORT void operator delete[](void *p) noexcept { hak_linked_delete_array(p); }
EXPORT void operator delete(void *p, std::size_t n) noexcept { hak_linked_delete_sized(p, n); }
EXPORT void operator delete[](void *p, std::size_t n) noexcept { hak_linked_delete_array_sized(p, n); }
EXPORT void operator delete(void *p, const std::nothrow_t &) noexcept { hak_linked_delete_sized(p, LINKED_SIZE_UNKNOWN); }
EXPORT void operator delete[](void *p, const std::nothrow_t &) noexcept { hak_linked_delete_array_sized(p, LINKED_SIZE_UNKNOWN); }
EXPORT void operator delete(void *p, std::align_val_t a) noexcept { hak_linked_delete_aligned(p, bytes(a)); }
EXPORT void operator delete[](void *p, std::align_val_t a) noexcept { hak_linked_delete_array_aligned(p, bytes(a)); }
EXPORT void operator delete(void *p, std::size_t n, std::align_val_t a) noexcept { hak_linked_delete_aligned_sized(p, bytes(a), n); }
EXPORT void operator delete[](void *p, std::size_t n, std::align_val_t a) noexcept
{
    hak_linked_delete_array_aligned_sized(p, bytes(a), n);
}
EXPORT void operator delete(void *p, std::align_val_t a, const std::nothrow_t &) noexcept
{
    hak_linked_delete_aligned_sized(p, bytes(a), LINKED_SIZE_UNKNOWN);
}
EXPORT void operator delete[](void *p, std::align_val_t a, const std::nothrow_t &) noexcept
{
    hak_linked_delete_array_aligned_sized(p, bytes(a), LINKED_SIZE_UNKNOWN);
}

/* For others.c, which compares: who has taken the place of those that others are made of? */
#define ALSO(own, name) __asm__(".globl " own "\n.hidden " own "\n.set " own ", " name)
ALSO("own_new", "_Znwm");
ALSO("own_new_array", "_Znam");
ALSO("own_new_aligned", "_ZnwmSt11align_val_t");
ALSO("own_new_array_aligned", "_ZnamSt11align_val_t");
ALSO("own_delete", "_ZdlPv");
ALSO("own_delete_array", "_ZdaPv");
ALSO("own_delete_aligned", "_ZdlPvSt11align_val_t");
ALSO("own_delete_array_aligned", "_ZdaPvSt11align_val_t");
