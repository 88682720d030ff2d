#include "worker.h"

#include <errno.h>
#include <stddef.h>

#include "check.h"

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        CHECK(errno == EINTR);
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    for (;;) {
        wait_for(&worker->begin);
        if (worker->job == NULL)
            return NULL;
        worker->job(worker->argument);
        sem_post(&worker->done);
    }
}

void worker_start(struct worker *worker)
{
    CHECK(sem_init(&worker->begin, 0, 0) == 0);
    CHECK(sem_init(&worker->done, 0, 0) == 0);
    CHECK(pthread_create(&worker->thread, NULL, work, worker) == 0);
}

void worker_begin(struct worker *worker, void (*job)(void *argument), void *argument)
{
    worker->job = job;
    worker->argument = argument;
    sem_post(&worker->begin);
}

void worker_wait(struct worker *worker)
{
    wait_for(&worker->done);
}

void worker_run(struct worker *worker, void (*job)(void *argument), void *argument)
{
    worker_begin(worker, job, argument);
    worker_wait(worker);
}

void worker_stop(struct worker *worker)
{
    worker_begin(worker, NULL, NULL);
    CHECK(pthread_join(worker->thread, NULL) == 0);
}
