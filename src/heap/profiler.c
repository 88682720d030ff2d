#include "heap/profiler.h"

const struct profiler *current_profiler;

struct lock profiler_lock = LOCK_INITIALIZER(LOCK_PROFILER);
