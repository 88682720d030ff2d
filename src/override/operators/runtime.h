/* What the operators of C++ use of the program's C++ library. */
#ifndef HAK_OVERRIDE_RUNTIME_H
#define HAK_OVERRIDE_RUNTIME_H

#include <new>

namespace runtime {

/* Can anything that is thrown here be caught here? */
bool can_catch() noexcept;

/* The one in force; null: none. */
std::new_handler new_handler() noexcept;

[[noreturn]] void throw_bad_alloc();

} // namespace runtime

#endif
