/* The library must not need libstdc++: this refers to it weakly, and looks again when it is needed, in a process that has loaded it after
 * us. */
#include "override/operators/runtime.h"

#include <cstdlib>

#include "override/late_lookup.h"

extern "C" void __gxx_personality_v0() __attribute__((weak));

/* NOLINTNEXTLINE(cert-dcl58-cpp): libstdc++'s own two, declared again so that they are weak. */
namespace std {
[[noreturn]] void __throw_bad_alloc() __attribute__((weak));
[[gnu::weak]] new_handler get_new_handler() noexcept;
} // namespace std

namespace {

/* A function of libstdc++: as it was when we were loaded, or of the one loaded since. Null: there is none. */
template <typename Function> Function *find(Function *at_load, const char *name)
{
    return at_load != nullptr ? at_load : reinterpret_cast<Function *>(late_lookup(name));
}

} // namespace

/* Without it when we were loaded, nothing can be. */
bool runtime::can_catch() noexcept
{
    return &__gxx_personality_v0 != nullptr;
}

std::new_handler runtime::new_handler() noexcept
{
    const auto get = find(&std::get_new_handler, "_ZSt15get_new_handlerv");
    return get != nullptr ? get() : nullptr;
}

void runtime::throw_bad_alloc()
{
    const auto throw_it = find(&std::__throw_bad_alloc, "_ZSt17__throw_bad_allocv");
    if (throw_it != nullptr)
        throw_it();
    std::abort();
}
