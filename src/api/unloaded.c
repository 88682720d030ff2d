#include "api/unloaded.h"

#include "observe/rules.h"

void unloaded_module(void)
{
    rules_forget();
}
