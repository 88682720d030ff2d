#include "os/frame.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>

#include "base/kernel.h"
#include "os/os.h"
#include "os/program.h"

struct os_frame os_frame_interrupted(const void *context)
{
    const ucontext_t *interrupted = context;
#if defined(__x86_64__)
    const greg_t *registers = interrupted->uc_mcontext.gregs;
    return (struct os_frame){
        .pc = (uintptr_t)registers[REG_RIP], .sp = (uintptr_t)registers[REG_RSP], .fp = (uintptr_t)registers[REG_RBP]};
#elif defined(__aarch64__)
    const mcontext_t *registers = &interrupted->uc_mcontext;
    return (struct os_frame){
        .pc = registers->pc, .sp = registers->sp, .fp = registers->regs[29], .ra = registers->regs[30]};
#endif
}

#if defined(__x86_64__)

enum { PAGE_FAULT = 14, WRITES = 1 << 1, FETCHES = 1 << 4 };

enum os_access os_access(const void *context)
{
    const greg_t *registers = ((const ucontext_t *)context)->uc_mcontext.gregs;
    if (registers[REG_TRAPNO] != PAGE_FAULT)
        return OS_ACCESS_UNKNOWN;
    if ((registers[REG_ERR] & FETCHES) != 0)
        return OS_ACCESS_EXECUTE;
    return (registers[REG_ERR] & WRITES) != 0 ? OS_ACCESS_WRITE : OS_ACCESS_READ;
}

/* A call of f by record->f(record->argument), where the argument lies behind f and both far inside the record: a load to %rdi, and the
 * call, with the same register and offsets of four bytes. So calls glibc's start_thread (since 2.34), and nothing else of that libc. */
enum { LOAD_BYTES = 7, CALL_BYTES = 6, RECORD_LEAST = 512, RECORD_MOST = 4096 };

bool os_frame_begins_thread(uintptr_t ra, const struct os_module *module)
{
    static const unsigned char load[] = {0x48, 0x8b, 0xb8};
    static const unsigned char call[] = {0xff, 0x90};
    enum { REGISTER = 7 };
    const unsigned char *at = (const unsigned char *)(ra - CALL_BYTES - LOAD_BYTES);
    bool is_libc = !module->is_program && os_module_holds(module, (uintptr_t)pthread_key_create);
    if (!is_libc || ra - module->start < LOAD_BYTES + CALL_BYTES)
        return false;
    uint32_t argument;
    uint32_t function;
    memcpy(&argument, at + sizeof load, sizeof argument);
    memcpy(&function, at + LOAD_BYTES + sizeof call, sizeof function);
    return at[0] == load[0] && at[1] == load[1] && (at[2] & ~REGISTER) == load[2] && at[LOAD_BYTES] == call[0]
           && (at[LOAD_BYTES + 1] & ~REGISTER) == call[1] && (at[2] & REGISTER) == (at[LOAD_BYTES + 1] & REGISTER)
           && argument == function + sizeof(void *) && function >= RECORD_LEAST && function < RECORD_MOST;
}

#elif defined(__aarch64__)

/* Of the kernel's interface (asm/sigcontext.h): records behind the registers, the last of no size. */
enum { FAULT_RECORD = 0x45535201, CLASS_SHIFT = 26, FETCH_ABORT = 0x20, DATA_ABORT = 0x24, WRITES = 1 << 6 };

struct record {
    uint32_t magic;
    uint32_t size;
};

enum os_access os_access(const void *context)
{
    const mcontext_t *registers = &((const ucontext_t *)context)->uc_mcontext;
    const unsigned char *at = (const unsigned char *)registers->__reserved; /* of other numbers, with musl */
    const unsigned char *end = at + sizeof registers->__reserved;
    while (end - at >= (ptrdiff_t)sizeof(struct record)) {
        const struct record *record = (const struct record *)(const void *)at;
        if (record->size < sizeof *record || record->size > (size_t)(end - at))
            break;
        if (record->magic == FAULT_RECORD) {
            uint64_t syndrome = *(const uint64_t *)(const void *)(record + 1);
            if (syndrome >> CLASS_SHIFT == FETCH_ABORT)
                return OS_ACCESS_EXECUTE;
            if (syndrome >> CLASS_SHIFT != DATA_ABORT)
                break;
            return (syndrome & WRITES) != 0 ? OS_ACCESS_WRITE : OS_ACCESS_READ;
        }
        at += record->size;
    }
    return OS_ACCESS_UNKNOWN;
}

bool os_frame_begins_thread(uintptr_t ra, const struct os_module *module)
{
    (void)ra;
    (void)module;
    return false;
}

#endif

size_t os_registers(const void *context, uintptr_t registers[OS_REGISTERS])
{
    const mcontext_t *all = &((const ucontext_t *)context)->uc_mcontext;
    for (size_t i = 0; i < OS_REGISTERS; i++)
#if defined(__x86_64__)
        registers[i] = (uintptr_t)all->gregs[i];
#elif defined(__aarch64__)
        registers[i] = all->regs[i];
#endif
    return OS_REGISTERS;
}

size_t os_read(uintptr_t from, void *to, size_t bytes)
{
    const struct iovec remote = {.iov_base = (void *)from, .iov_len = bytes};
    const struct iovec local = {.iov_base = to, .iov_len = bytes};
    long self = kernel(SYS_gettid, 0, 0, 0, 0, 0); /* the process's own number has no memory when its first thread has ended */
    long got = kernel6(SYS_process_vm_readv, self, (long)&local, 1, (long)&remote, 1, 0);
    return got > 0 ? (size_t)got : 0;
}

bool os_frame_interrupted_at(uintptr_t sp, bool sure, struct os_frame *frame)
{
    ucontext_t context = {0};
#if defined(__x86_64__)
    uintptr_t at = sp; /* the return address before it has been popped */
    size_t least = offsetof(ucontext_t, uc_mcontext.gregs) + sizeof context.uc_mcontext.gregs;
#elif defined(__aarch64__)
    uintptr_t at = sp + sizeof(siginfo_t);
    size_t least = offsetof(ucontext_t, uc_mcontext.pstate);
#endif
    if (sure ? !os_is_readable(at) || !os_is_readable(at + align_down(least - 1, sizeof(uintptr_t)))
             : os_read(at, &context, sizeof context) < least)
        return false;
    *frame = os_frame_interrupted(sure ? (const void *)at : &context);
    return true;
}

static const char *program_path(void)
{
    const char *path = (const char *)getauxval(AT_EXECFN);
    return path != NULL ? path : "";
}

/* The program itself, as the kernel has loaded it. */
static bool find_in_program(uintptr_t address, struct os_module *module)
{
    const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    size_t count = getauxval(AT_PHNUM);
    bool here = false;
    if (headers == NULL)
        return false;
    uintptr_t base = os_program_base(headers, count);
    *module = (struct os_module){.path = program_path(), .base = base, .is_program = true};
    for (size_t i = 0; i < count; i++) {
        uintptr_t start = base + headers[i].p_vaddr;
        if (headers[i].p_type == PT_GNU_EH_FRAME)
            module->unwinding = (const uint8_t *)start;
        if (headers[i].p_type == PT_LOAD && address - start < headers[i].p_memsz) {
            module->start = start;
            module->end = start + headers[i].p_memsz;
            here = true;
        }
    }
    return here;
}

#if defined(DLFO_STRUCT_HAS_EH_DBASE)

/* Since glibc 2.35; a library that was built with it runs with older ones too. Static programs seldom have it. */
extern __typeof__(_dl_find_object) _dl_find_object __attribute__((weak));

bool os_find_module(uintptr_t address, struct os_module *module)
{
    struct dl_find_object found;
    if (&_dl_find_object == NULL)
        return find_in_program(address, module);
    if (_dl_find_object((void *)address, &found) != 0)
        return false;
    const struct link_map *map = found.dlfo_link_map;
    bool is_program = map->l_name[0] == '\0';
    *module = (struct os_module){.path = is_program ? program_path() : map->l_name,
                                 .start = (uintptr_t)found.dlfo_map_start,
                                 .end = (uintptr_t)found.dlfo_map_end,
                                 .base = map->l_addr,
                                 .unwinding = found.dlfo_eh_frame,
                                 .is_program = is_program};
    return true;
}

#else

bool os_find_module(uintptr_t address, struct os_module *module)
{
    return find_in_program(address, module);
}

#endif
