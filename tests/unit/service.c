#include "service.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "check.h"
#include "os/os.h"

struct service service;
const char service_name[] = "hak-service";
_Thread_local char service_wide[40 * KIB];

void service_start(void (*body)(void))
{
    CHECK(os_service_start(body, service_name, service_wide));
}

void service_wait_for_end(void)
{
    while (os_service_runs())
        usleep(100);
}

void service_wait_for_rounds(uint32_t wanted)
{
    while (load_acquire(&service.rounds) < wanted)
        usleep(100);
}

void service_count_round(void)
{
    store_release(&service.rounds, service.rounds + 1);
}

void service_sleep(void)
{
    char here;
    service.stack = &here;
    service.id = os_thread_id();
    service_count_round();
    while (load_acquire(&service.gate) == 0)
        os_sleep(1);
}

void service_start_sleeper(void)
{
    service.rounds = 0;
    service_start(service_sleep);
    service_wait_for_rounds(1);
}

void service_open_gate(void)
{
    store_release(&service.gate, 1u);
    service_wait_for_end();
    store_relaxed(&service.gate, 0u);
}

uint64_t service_blocked_signals(void)
{
    uint64_t mask = 0;
    CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof mask) == 0);
    return mask;
}
