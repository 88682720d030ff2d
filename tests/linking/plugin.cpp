/* A plugin in C++: what its operators new do without memory. */
#include <cstddef>
#include <new>

namespace {
volatile std::size_t impossible = std::size_t{1} << 60;
}

extern "C" __attribute__((visibility("default"))) bool plugin_new_throws()
{
    try {
        char *volatile block = new char[impossible]; /* volatile: the compiler may drop a pair of new and delete */
        delete[] block;
        return false;
    } catch (const std::bad_alloc &) {
        return true;
    }
}

extern "C" __attribute__((visibility("default"))) bool plugin_nothrow_is_null()
{
    char *volatile block = new (std::nothrow) char[impossible];
    return block == nullptr;
}
