/* What the library knows of a module's code, and has to forget. */
#ifndef HAK_API_UNLOADED_H
#define HAK_API_UNLOADED_H

/* A module has been unloaded, and another may be loaded into its place. Async-signal-safe. */
void unloaded_module(void);

#endif
