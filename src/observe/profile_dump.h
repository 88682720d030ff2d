/*
 * A profile as a file: heap_v2, the text format of gperftools and tcmalloc that pprof reads.
 *
 *   heap profile: LIVE: BYTES [ALLOCATED: BYTES] @ heap_v2/RATE
 *   # hakmem-profile 1 pid=… rate=… started_ms=… now_ms=… samples=… dropped=… live_bytes=… peak_bytes=… memory=…
 *   LIVE: BYTES [ALLOCATED: BYTES] @ 0x… 0x…                 one for each stack and size, the calls from the innermost on
 *   # peak LIVE BYTES lifetimes N N N N N N N N              of the line before
 *   # build-id 0x… HEX                                       of the file whose beginning is mapped there
 *   MAPPED_LIBRARIES:
 *   …                                                        /proc/self/maps; "# no mappings" where that cannot be opened
 *
 * All numbers of sites and of the first line are of samples, as they were taken: a reader multiplies both by 1 / (1 - exp(-s /
 * RATE)), s being the line's mean size; with a rate of 1 they stand for themselves. live_bytes and peak_bytes are estimates,
 * with that done. Peak is what was live when the estimate of all that is live was at its most. Lifetimes are those of freed
 * samples: below 1 ms, 10 ms, 100 ms, 1 s, 10 s, 100 s, 1000 s, and longer. Times are Unix times, now_ms being that of
 * the end of a profile that was stopped before. Calls are return addresses, at most 48: readers subtract one.
 */
#ifndef HAK_OBSERVE_PROFILE_DUMP_H
#define HAK_OBSERVE_PROFILE_DUMP_H

/* Writes the profile in progress, or that of the last start, to this path (os/output.h). Returns 0, or an errno: ENODATA: there
 * never was one; EBUSY: another thread writes one; ENOMEM; EDEADLK as of profile_start; or what the file system said. Takes
 * memory from the system for the time being, none from the heap. Any thread, inside its door or not. */
int profile_dump(const char *path);

/* If there is a profile and policy.profile_path, profile_dump to that, %p in it being the process's number; if that fails, a line
 * of warning. So it is at exit. Returns 0 or the errno. */
int profile_dump_asked(void);

#endif
