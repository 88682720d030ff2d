/*
 * The service thread of os/os.h under test: the system's, or in programs that are linked with the fake (fake_os.h) the
 * fake's.
 */
#ifndef HAK_TEST_SERVICE_H
#define HAK_TEST_SERVICE_H

#include <stdint.h>

#include "base/bits.h"
#include "base/compiler.h"

#if !defined(HAK_TEST_FAKE_SERVICE)
#define HAK_TEST_FAKE_SERVICE 0
#endif

/* Is the service thread one of libc's? */
#define SERVICE_IS_LIBCS (HAK_SANITIZED || HAK_TEST_FAKE_SERVICE)

enum { SERVICE_ROUNDS = 500 };

extern struct service {
    uint32_t gate;   /* 0: shut */
    uint32_t rounds; /* written by bodies */
    int id;
    char *stack; /* of service_sleep */
} service;

extern const char service_name[];

/* So many thread-local variables of the program put libc's and ours at a distance. */
extern _Thread_local char service_wide[40 * KIB];

/* Starts it with that body; it must not be refused. */
void service_start(void (*body)(void));

void service_wait_for_end(void);
void service_wait_for_rounds(uint32_t wanted);

/* Bodies: one round; one round, and then until the gate opens. */
void service_count_round(void);
void service_sleep(void);

/* Starts service_sleep, and returns when it sleeps. */
void service_start_sleeper(void);

/* Opens the gate, waits for the end, and shuts it again. */
void service_open_gate(void);

/* The signals that the calling thread has blocked, as the kernel knows it; bit 0 is signal 1. */
uint64_t service_blocked_signals(void);

#endif
