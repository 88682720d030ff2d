/*
 * Every operator new and delete of C++17, as a pointer that the compiler cannot see through: it may leave out pairs of new and delete.
 */
#ifndef HAK_TESTS_EVERY_OPERATOR_H
#define HAK_TESTS_EVERY_OPERATOR_H

#include <cstddef>
#include <new>

/* clang declares the sized forms only with -fsized-deallocation. */
void operator delete(void *, std::size_t) noexcept;
void operator delete[](void *, std::size_t) noexcept;
void operator delete(void *, std::size_t, std::align_val_t) noexcept;
void operator delete[](void *, std::size_t, std::align_val_t) noexcept;

namespace {

using std::align_val_t;
using std::nothrow_t;

void *(*volatile new_plain)(std::size_t) = ::operator new;
void *(*volatile new_array)(std::size_t) = ::operator new[];
void *(*volatile new_nothrow)(std::size_t, const nothrow_t &) noexcept = ::operator new;
void *(*volatile new_array_nothrow)(std::size_t, const nothrow_t &) noexcept = ::operator new[];
void *(*volatile new_aligned)(std::size_t, align_val_t) = ::operator new;
void *(*volatile new_array_aligned)(std::size_t, align_val_t) = ::operator new[];
void *(*volatile new_aligned_nothrow)(std::size_t, align_val_t, const nothrow_t &) noexcept = ::operator new;
void *(*volatile new_array_aligned_nothrow)(std::size_t, align_val_t, const nothrow_t &) noexcept = ::operator new[];

void (*volatile delete_plain)(void *) noexcept = ::operator delete;
void (*volatile delete_array)(void *) noexcept = ::operator delete[];
void (*volatile delete_sized)(void *, std::size_t) noexcept = ::operator delete;
void (*volatile delete_array_sized)(void *, std::size_t) noexcept = ::operator delete[];
void (*volatile delete_nothrow)(void *, const nothrow_t &) noexcept = ::operator delete;
void (*volatile delete_array_nothrow)(void *, const nothrow_t &) noexcept = ::operator delete[];
void (*volatile delete_aligned)(void *, align_val_t) noexcept = ::operator delete;
void (*volatile delete_array_aligned)(void *, align_val_t) noexcept = ::operator delete[];
void (*volatile delete_aligned_sized)(void *, std::size_t, align_val_t) noexcept = ::operator delete;
void (*volatile delete_array_aligned_sized)(void *, std::size_t, align_val_t) noexcept = ::operator delete[];
void (*volatile delete_aligned_nothrow)(void *, align_val_t, const nothrow_t &) noexcept = ::operator delete;
void (*volatile delete_array_aligned_nothrow)(void *, align_val_t, const nothrow_t &) noexcept = ::operator delete[];

} // namespace

#endif
