/* A thread that does one job after another when told to, and sleeps in between. */
#ifndef HAK_TEST_WORKER_H
#define HAK_TEST_WORKER_H

#include <pthread.h>
#include <semaphore.h>

struct worker {
    pthread_t thread;
    sem_t begin;
    sem_t done;
    void (*job)(void *argument);
    void *argument;
};

void worker_start(struct worker *worker);

/* Hands the worker a job; it works on it at the same time as the caller. */
void worker_begin(struct worker *worker, void (*job)(void *argument), void *argument);

/* Waits until the job is done. */
void worker_wait(struct worker *worker);

/* Both. */
void worker_run(struct worker *worker, void (*job)(void *argument), void *argument);

/* Ends the thread, destructors included, and waits for that. */
void worker_stop(struct worker *worker);

#endif
