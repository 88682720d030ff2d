/* What leads from a function to its caller, on this machine. */
#ifndef HAK_OS_FRAME_H
#define HAK_OS_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* Registers of a thread in the middle of some function. */
struct os_frame {
    uintptr_t pc;
    uintptr_t sp;
    uintptr_t fp; /* the frame pointer, where code keeps one */
    uintptr_t ra; /* the register with the return address, where there is one (AArch64) */
    bool linked;  /* the frame pointer leads to the caller's, and to where control returns: of a function that has not returned yet */
};

/* Numbers of these registers in call frame information (the processors' ABI supplements). */
#if defined(__x86_64__)
enum { OS_CFI_SP = 7, OS_CFI_FP = 6, OS_CFI_RA = 16, OS_CFI_BREG_SP = 0x70 + OS_CFI_SP, OS_CFI_BREG_FP = 0x70 + OS_CFI_FP };
#elif defined(__aarch64__)
enum { OS_CFI_SP = 31, OS_CFI_FP = 29, OS_CFI_RA = 30, OS_CFI_BREG_SP = 0x70 + OS_CFI_SP, OS_CFI_BREG_FP = 0x70 + OS_CFI_FP };
#endif

/* Of the function that calls this. */
ALWAYS_INLINE struct os_frame os_frame_here(void)
{
    struct os_frame frame = {0};
#if defined(__x86_64__)
    __asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2" : "=r"(frame.pc), "=r"(frame.sp), "=r"(frame.fp));
#elif defined(__aarch64__)
    __asm__ volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29\n\tmov %3, x30"
                     : "=r"(frame.pc), "=r"(frame.sp), "=r"(frame.fp), "=r"(frame.ra));
#endif
    return frame;
}

/* The same. The compiler is made to keep a frame pointer, so that nothing has to be looked up of the function's own code: that
 * would bring the library's call frame information into memory. AArch64 does not say by it where the caller's frame begins. */
ALWAYS_INLINE struct os_frame os_frame_linked(void)
{
    struct os_frame frame = os_frame_here();
#if defined(__x86_64__)
    frame.fp = (uintptr_t)__builtin_frame_address(0);
    frame.linked = true;
#endif
    return frame;
}

/* Of a thread that a signal has interrupted; `context` is what its handler got. */
struct os_frame os_frame_interrupted(const void *context);

/* What the instruction did that a signal has interrupted because of it. */
enum os_access { OS_ACCESS_UNKNOWN, OS_ACCESS_READ, OS_ACCESS_WRITE, OS_ACCESS_EXECUTE };

enum os_access os_access(const void *context);

/* Of what a signal has interrupted, for who finds `sp` in the code that returns from signal handlers. If that is not sure,
 * what is there is copied by the kernel. False: no such thing. */
bool os_frame_interrupted_at(uintptr_t sp, bool sure, struct os_frame *frame);

/* The address in a return address, which may be signed (AArch64). */
ALWAYS_INLINE uintptr_t os_frame_address(uintptr_t ra)
{
#if defined(__aarch64__)
    return ra & (((uintptr_t)1 << 48) - 1);
#else
    return ra;
#endif
}

#if defined(__aarch64__)
enum { OS_REGISTERS = 31 };
#else
enum { OS_REGISTERS = 16 };
#endif

/* The registers that may hold a pointer, of what a signal has interrupted. Returns how many. */
size_t os_registers(const void *context, uintptr_t registers[OS_REGISTERS]);

/* Copies memory that may not be mapped. Returns how many bytes, from the first on, there are. */
size_t os_read(uintptr_t from, void *to, size_t bytes);

/* A piece of loaded code. */
struct os_module {
    const char *path;         /* of the program: as it was started */
    uintptr_t start;          /* addresses from here to the end are its own */
    uintptr_t end;
    uintptr_t base;           /* its addresses less those in its file */
    const uint8_t *unwinding; /* its .eh_frame_hdr; NULL: it has none */
    bool is_program;          /* and no library */
};

ALWAYS_INLINE bool os_module_holds(const struct os_module *module, uintptr_t address)
{
    return address - module->start < module->end - module->start;
}

/* Which one holds this address. Takes no lock and allocates nothing: the loader may be in the middle of dlopen. Where libc
 * cannot tell without a lock, only the program itself is found. The path stays while the module is loaded. */
bool os_find_module(uintptr_t address, struct os_module *module);

/* Does control return to where libc runs what a thread was made for? `ra` is a return address, and is in the module. Told by the code
 * that has called, of which there must be some. False: it does not, or that is not known of this libc. */
bool os_frame_begins_thread(uintptr_t ra, const struct os_module *module);

#endif
