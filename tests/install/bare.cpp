// Of the C++ library it needs the operators only, and to catch. Nothing else brings what throws for them into a static program.
#include <cstdio>
#include <cstdlib>
#include <new>

static volatile std::size_t too_large = std::size_t{1} << 62;
static void *volatile kept;

int main()
{
    int caught = 0;
    try {
        kept = ::operator new(too_large);
    } catch (...) {
        caught++;
    }
    try {
        kept = ::operator new[](too_large, std::align_val_t{64});
    } catch (...) {
        caught++;
    }
    kept = ::operator new(too_large, std::nothrow);
    if (caught != 2 || kept != nullptr)
        return 1;
    std::set_new_handler([] { std::puts("done"), std::exit(0); });
    kept = ::operator new(too_large, std::nothrow);
    return 1;
}
