/* A function of the libstdc++ that this process has loaded since we were, which may be private to a plugin. */
#ifndef HAK_OVERRIDE_LATE_LOOKUP_H
#define HAK_OVERRIDE_LATE_LOOKUP_H

#ifdef __cplusplus
extern "C" {
#endif

/* Its address, or null. Absent from the static library, hence weak. */
__attribute__((weak, visibility("hidden"))) void *late_lookup(const char *name);

#ifdef __cplusplus
}
#endif

#endif
