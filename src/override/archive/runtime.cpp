/* A program that is linked with the archive, and has operators, has a C++ library: without one it would have none that asks for them. Of
 * which kind it is does not matter. */
#include "override/operators/runtime.h"

bool runtime::can_catch() noexcept
{
    return true;
}

std::new_handler runtime::new_handler() noexcept
{
    return std::get_new_handler();
}

void runtime::throw_bad_alloc()
{
    throw std::bad_alloc();
}
