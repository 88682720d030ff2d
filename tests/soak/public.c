#include "public.h"

#include "check.h"
#include "family.h"
#include "hakmem.h"

#include <stdlib.h>

#pragma weak hak_purge
#pragma weak hak_prewarm
#pragma weak hak_set_limit
#pragma weak hak_mode_set
#pragma weak hak_version

static bool trims = true;

void public_allow_trims(bool allow)
{
    trims = allow;
}

bool public_is_there(void)
{
    return hak_version != NULL && hak_purge != NULL;
}

const char *public_name(void)
{
    return public_is_there() ? hak_version() : "none: another allocator serves this process";
}

void public_purge(bool cached)
{
    if (hak_purge != NULL) {
        (void)hak_purge(cached && trims ? HAK_PURGE_CACHED : HAK_PURGE_FREE);
    }
}

void public_trim(void)
{
    if (family.malloc_trim != NULL && trims) {
        (void)family.malloc_trim(0);
    }
}

void public_prewarm(size_t size, size_t count)
{
    if (hak_prewarm != NULL) {
        (void)hak_prewarm(size, count);
    }
}

void public_set_limit(size_t soft, size_t hard)
{
    if (hak_set_limit != NULL) {
        CHECK(hak_set_limit(soft, hard) == 0);
    }
}

bool public_may_set_limits(void)
{
    return hak_set_limit != NULL && public_is_there() && getenv("HAKMEM_LIMIT") == NULL;
}

bool public_may_set_mode(void)
{
    return hak_mode_set != NULL && getenv("HAKMEM_MODE") == NULL;
}

void public_set_mode(const char *name)
{
    CHECK(hak_mode_set(name) == 0);
}
