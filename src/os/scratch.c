#include "os/scratch.h"

#include "base/bits.h"
#include "os/os.h"

static size_t whole_pages(size_t bytes)
{
    return align_up(bytes, os_page_size());
}

void *scratch_take(size_t bytes)
{
    void *at = os_reserve(NULL, whole_pages(bytes));
    if (at == NULL || os_commit(at, whole_pages(bytes)))
        return at;
    scratch_drop(at, bytes);
    return NULL;
}

void scratch_drop(void *at, size_t bytes)
{
    os_release(at, whole_pages(bytes));
}
