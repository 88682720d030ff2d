/* new of a type that is aligned to more than any, and delete that knows nothing of it: a warning, the program goes on. */
#include <new>

struct alignas(64) Line {
    char bytes[64];
};

int main()
{
    Line *line = new Line;
    ::operator delete(static_cast<void *>(line));
    return 0;
}
