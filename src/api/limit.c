/* Memory limits, under their hak_ names. */
#include "hakmem.h"

#include <errno.h>
#include <stdint.h>

#include "heap/door.h"
#include "span/limit.h"

static size_t or_none(size_t limit)
{
    return limit != 0 ? limit : SIZE_MAX;
}

struct limits {
    size_t soft;
    size_t hard;
};

static void set(void *argument)
{
    const struct limits *limits = argument;
    limit_set(limits->soft, limits->hard);
}

static void set_listener(void *argument)
{
    limit_set_listener(*(const struct limit_listener *)argument);
}

int hak_set_limit(size_t soft, size_t hard)
{
    if (hard != 0 && hard < soft)
        return EINVAL;
    door_visit(set, &(struct limits){or_none(soft), or_none(hard)});
    return 0;
}

void hak_set_limit_callback(void (*callback)(size_t held, size_t limit, void *data), void *data)
{
    door_visit(set_listener, &(struct limit_listener){callback, data});
}
