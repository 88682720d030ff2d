/*
 * Probes for tracers (bpftrace, perf, SystemTap): PROBE(provider, name, values of up to three words) is one nop and a note
 * in the file, which says where the nop and the values are. The format is that of SystemTap's sys/sdt.h, version 3.
 */
#ifndef HAK_BASE_PROBE_H
#define HAK_BASE_PROBE_H

#include <stdint.h>

#define PROBE_WORD(x) ((uint64_t)(uintptr_t)(x))

/* The note: its name, type 3; addresses of the probe, of a section that tells how far the file was moved by prelink, of no
 * semaphore; then provider, name and arguments, each 8 bytes in the register that stands there. */
#define PROBE_NOTE(provider, name, arguments)                                                          \
    "990:\tnop\n"                                                                                      \
    "\t.pushsection .note.stapsdt,\"?\",\"note\"\n"                                                    \
    "\t.balign 4\n"                                                                                    \
    "\t.4byte 992f-991f, 994f-993f, 3\n"                                                               \
    "991:\t.asciz \"stapsdt\"\n"                                                                       \
    "992:\t.balign 4\n"                                                                                \
    "993:\t.8byte 990b, _.stapsdt.base, 0\n"                                                           \
    "\t.asciz \"" #provider "\"\n"                                                                     \
    "\t.asciz \"" #name "\"\n"                                                                         \
    "\t.asciz \"" arguments "\"\n"                                                                     \
    "994:\t.balign 4\n"                                                                                \
    "\t.popsection\n"                                                                                  \
    "\t.ifndef _.stapsdt.base\n"                                                                       \
    "\t.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"                          \
    "\t.weak _.stapsdt.base\n"                                                                         \
    "\t.hidden _.stapsdt.base\n"                                                                       \
    "_.stapsdt.base:\t.space 1\n"                                                                      \
    "\t.size _.stapsdt.base, 1\n"                                                                      \
    "\t.popsection\n"                                                                                  \
    "\t.endif\n"

#if defined(__ELF__) && (defined(__x86_64__) || defined(__aarch64__)) && (defined(__GNUC__) || defined(__clang__))
#define PROBE1(provider, name, a) __asm__ volatile(PROBE_NOTE(provider, name, "8@%0") : : "r"(PROBE_WORD(a)))
#define PROBE2(provider, name, a, b)                                                                   \
    __asm__ volatile(PROBE_NOTE(provider, name, "8@%0 8@%1") : : "r"(PROBE_WORD(a)), "r"(PROBE_WORD(b)))
#define PROBE3(provider, name, a, b, c)                                                                \
    __asm__ volatile(PROBE_NOTE(provider, name, "8@%0 8@%1 8@%2")                                      \
                     :                                                                                 \
                     : "r"(PROBE_WORD(a)), "r"(PROBE_WORD(b)), "r"(PROBE_WORD(c)))
#else
#define PROBE1(provider, name, a) ((void)(a))
#define PROBE2(provider, name, a, b) ((void)(a), (void)(b))
#define PROBE3(provider, name, a, b, c) ((void)(a), (void)(b), (void)(c))
#endif

#endif
