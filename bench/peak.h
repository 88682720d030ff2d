/* What a process that stands still has held in memory at most. */
#ifndef BENCH_PEAK_H
#define BENCH_PEAK_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* KiB, exact while it stands at its end (PTRACE_EVENT_EXIT): see measure.c. 0: not known. */
static inline long peak_kib_of(pid_t process)
{
    char path[64];
    char text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)process);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file == -1 ? -1 : read(file, text, sizeof text - 1);
    if (file != -1)
        close(file);
    if (length <= 0)
        return 0;
    text[length] = '\0';
    const char *peak = strstr(text, "\nVmHWM:");
    return peak == NULL ? 0 : strtol(peak + strlen("\nVmHWM:"), NULL, 10);
}

#endif
