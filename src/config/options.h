/* What the environment may set. One table (options.c) holds each name, its legal values and its effect. */
#ifndef HAK_CONFIG_OPTIONS_H
#define HAK_CONFIG_OPTIONS_H

/* Reads every HAKMEM_ variable of `environment` (NULL-terminated "NAME=VALUE") into the policy. A value that
 * is not legal, or a name that is not known, gets one line of warning, and the default stays. Ignores
 * everything in a set-user-ID process. Called once, from the library's constructor. */
void options_load(char **environment);

#endif
