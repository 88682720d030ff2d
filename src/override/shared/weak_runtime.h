/* The shared library must not need libstdc++: what the compiler's own code uses of it is weak. The build puts this before each source in C++. */
#ifndef HAK_OVERRIDE_SHARED_WEAK_RUNTIME_H
#define HAK_OVERRIDE_SHARED_WEAK_RUNTIME_H

__asm__(".weak __gxx_personality_v0\n.weak __cxa_begin_catch\n.weak __cxa_end_catch\n"
        ".weak __cxa_call_terminate\n.weak _Unwind_Resume\n.weak _ZSt9terminatev\n");

#endif
