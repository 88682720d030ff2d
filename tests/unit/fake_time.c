/* The fake system's thread, and its time. */
#include "fake_os.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"
#include "check.h"
#include "fake_calls.h"
#include "os/os.h"

static _Atomic uint64_t now_ms;

void __real_os_sleep(uint32_t ms);
struct os_usage __real_os_usage(void);
uint64_t __real_clock_now_ms(void);
uint64_t __real_clock_now_ns(void);

bool __wrap_os_service_start(void (*body)(void), const char *name, const void *local);
bool __wrap_os_service_runs(void);
void __wrap_os_service_forget(void);
void __wrap_os_sleep(uint32_t ms);
struct os_usage __wrap_os_usage(void);
uint64_t __wrap_clock_now_ms(void);
uint64_t __wrap_clock_now_ns(void);

static struct {
    _Atomic bool runs;
    void (*body)(void);
    const char *name;
} service;

static void *run_service(void *unused)
{
    CHECK(pthread_setname_np(pthread_self(), service.name) == 0);
    service.body();
    service.runs = false;
    return unused;
}

bool __wrap_os_service_start(void (*body)(void), const char *name, const void *local)
{
    (void)local;
    bool none = false;
    if (fake_os_refuses(FAKE_SERVICE) || !atomic_compare_exchange_strong(&service.runs, &none, true))
        return false;
    service.body = body;
    service.name = name;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGSYS);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    bool begun = pthread_create(&thread, NULL, run_service, NULL) == 0; /* not where the test leaves no memory for it */
    if (begun)
        CHECK(pthread_detach(thread) == 0);
    else
        service.runs = false;
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    return begun;
}

bool __wrap_os_service_runs(void)
{
    return service.runs;
}

void __wrap_os_service_forget(void)
{
    service.runs = false;
}

static void (*before_sleep)(uint32_t ms);

void fake_os_before_sleep(void (*hook)(uint32_t ms))
{
    before_sleep = hook;
}

void __wrap_os_sleep(uint32_t ms)
{
    if (before_sleep != NULL)
        before_sleep(ms);
    if (!fake_os_refuses(FAKE_SLEEP))
        __real_os_sleep(ms);
}

struct os_usage __wrap_os_usage(void)
{
    return fake_os_refuses(FAKE_USAGE) ? (struct os_usage){0} : __real_os_usage();
}

void fake_clock_set(uint64_t ms)
{
    now_ms = ms;
}

uint64_t __wrap_clock_now_ms(void)
{
    uint64_t set = now_ms;
    return set != 0 ? set : __real_clock_now_ms();
}

uint64_t __wrap_clock_now_ns(void)
{
    uint64_t set = now_ms;
    return set != 0 ? set * 1000000 : __real_clock_now_ns();
}
