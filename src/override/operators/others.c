/* Operators that the program brings, of those that others are made of. Not in operators.cpp: who defines a function there takes it for the one
 * that the linker finds. */
#include "override/linked.h"

/* As the linker finds them, and ours by other names (operators.cpp). An alignment is a std::align_val_t, which is passed as the number that it
 * is. */
extern linked_new_function linker_new __asm__("_Znwm");
extern linked_new_function linker_new_array __asm__("_Znam");
extern linked_new_aligned_function linker_new_aligned __asm__("_ZnwmSt11align_val_t");
extern linked_new_aligned_function linker_new_array_aligned __asm__("_ZnamSt11align_val_t");
extern linked_delete_function linker_delete __asm__("_ZdlPv");
extern linked_delete_function linker_delete_array __asm__("_ZdaPv");
extern linked_delete_aligned_function linker_delete_aligned __asm__("_ZdlPvSt11align_val_t");
extern linked_delete_aligned_function linker_delete_array_aligned __asm__("_ZdaPvSt11align_val_t");
extern linked_new_function own_new HIDDEN;
extern linked_new_function own_new_array HIDDEN;
extern linked_new_aligned_function own_new_aligned HIDDEN;
extern linked_new_aligned_function own_new_array_aligned HIDDEN;
extern linked_delete_function own_delete HIDDEN;
extern linked_delete_function own_delete_array HIDDEN;
extern linked_delete_aligned_function own_delete_aligned HIDDEN;
extern linked_delete_aligned_function own_delete_array_aligned HIDDEN;

linked_new_function *hak_linked_others_new(bool array)
{
    if (array && linker_new_array != own_new_array)
        return linker_new_array;
    return linker_new != own_new ? linker_new : NULL;
}

linked_new_aligned_function *hak_linked_others_new_aligned(bool array)
{
    if (array && linker_new_array_aligned != own_new_array_aligned)
        return linker_new_array_aligned;
    return linker_new_aligned != own_new_aligned ? linker_new_aligned : NULL;
}

linked_delete_function *hak_linked_others_delete(bool array)
{
    if (array && linker_delete_array != own_delete_array)
        return linker_delete_array;
    return linker_delete != own_delete ? linker_delete : NULL;
}

linked_delete_aligned_function *hak_linked_others_delete_aligned(bool array)
{
    if (array && linker_delete_array_aligned != own_delete_array_aligned)
        return linker_delete_array_aligned;
    return linker_delete_aligned != own_delete_aligned ? linker_delete_aligned : NULL;
}
