// Names nothing of hakmem: it is served because it is linked with it.
#include <cstdio>
#include <malloc.h>
#include <new>
#include <thread>

#ifdef WANTED_HARDENED
constexpr std::size_t LARGE = 1000, SMALL = 100;
#else
constexpr std::size_t LARGE = 1024, SMALL = 112;
#endif

static void *volatile kept;

static bool is_hakmems(std::size_t size, std::size_t usable)
{
    kept = ::operator new(size);
    const bool right = malloc_usable_size(kept) == usable;
    ::operator delete(kept);
    return right;
}

int main()
{
    bool in_thread = false;
    std::thread([&] { in_thread = is_hakmems(1000, LARGE); }).join();
    if (!in_thread || !is_hakmems(100, SMALL)) {
        std::fputs("operator new is not hakmem's\n", stderr);
        return 1;
    }
    std::puts("served");
    return 0;
}
