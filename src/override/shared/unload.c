/*
 * dlclose: what stacks have found out about a module's code ends with it (observe/rules.h). The next one that is loaded may lie
 * in its place. Modules that libc unloads by itself come back as they were.
 */
#include <dlfcn.h>
#include <stddef.h>

#include "api/unloaded.h"
#include "base/atomic.h"
#include "hakmem.h"
#include "override/late_lookup.h"

typedef int close_function(void *handle);

HAK_EXPORT int dlclose(void *handle)
{
    static close_function *found;
    close_function *function = load_relaxed(&found);
    if (function == NULL) {
        function = (close_function *)late_lookup_next("dlclose");
        store_relaxed(&found, function);
    }
    /* Before, for who loads another in its place as soon as it is gone; and after, for what its own destructors have found out. */
    unloaded_module();
    int result = function != NULL ? function(handle) : -1;
    unloaded_module();
    return result;
}
