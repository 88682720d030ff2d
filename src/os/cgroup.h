/*
 * The limits of the process's control group, of memory and of processors. What the kernel's texts say is read by pure functions
 * (cgroup_text.c), which take any text: one that says nothing of a limit is "none". Internal to the layer; os_memory_limit and
 * os_processors are the contract.
 */
#ifndef HAK_OS_CGROUP_H
#define HAK_OS_CGROUP_H

#include <stddef.h>

/* What is limited. */
enum cgroup_controller { CGROUP_MEMORY, CGROUP_CPU, CGROUP_CONTROLLERS };

/* Which kind of hierarchy limits it. With both (hybrid), the first that has the controller does, and the other has no such
 * files. */
enum cgroup_version { CGROUP_V1, CGROUP_V2, CGROUP_VERSIONS, CGROUP_NONE = CGROUP_VERSIONS };

/* A line of /proc/PID/cgroup, "4:memory:/path" or "0::/path". If it is of a hierarchy that may limit this, *path is what follows
 * the second colon. */
enum cgroup_version cgroup_parse_membership(const char *line, enum cgroup_controller what, const char **path);

/* A mounted hierarchy. */
struct cgroup_mount {
    const char *root;  /* path of the group that is mounted */
    const char *point; /* where */
};

/* A line of /proc/PID/mountinfo, which is cut into strings: if it mounts a hierarchy that may limit this, *mount is
 * in them. (proc(5), man-pages 6.03) */
enum cgroup_version cgroup_parse_mount(char *line, enum cgroup_controller what, struct cgroup_mount *mount);

/* The part of a group's path below the group that is mounted: "", or it begins with a slash. NULL: it is not below. */
const char *cgroup_below(const char *path, const char *root);

/* The content of a limit's file, bytes: "max", what is no number, and numbers beyond 2^60, as v1 has them where there
 * is no limit, are SIZE_MAX. */
size_t cgroup_parse_limit(const char *text);

/* The content of cpu.max, "150000 100000", or of v1's two files with a blank between them: the processors that make up this
 * quota of a period, a part of one counting as one. No quota ("max", -1), or what is no two numbers: SIZE_MAX. */
size_t cgroup_parse_processors(const char *text);

/* The lowest limit of the process's group and of those above it, bytes or processors; SIZE_MAX: none that can be seen; 0: that may be seen
 * later, when files can be opened again (EMFILE, for one). With /proc and the usual mount points
 * below the directory `top`, "" for those of the system. Mount points that mountinfo names are below it too. */
size_t cgroup_limit(const char *top, enum cgroup_controller what);

#endif
