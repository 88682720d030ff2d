/* What the loader knows of other libraries, which only the shared library can ask. */
#ifndef HAK_OVERRIDE_LATE_LOOKUP_H
#define HAK_OVERRIDE_LATE_LOOKUP_H

#ifdef __cplusplus
extern "C" {
#endif

/* A function of the libstdc++ that this process has loaded since we were, which may be private to a plugin; or
 * null. Not in the archive. */
__attribute__((visibility("hidden"))) void *late_lookup(const char *name);

/* The function of this name that the program would have without us; or null. */
__attribute__((visibility("hidden"))) void *late_lookup_next(const char *name);

#ifdef __cplusplus
}
#endif

#endif
