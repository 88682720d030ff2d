/* Which binary this is. */
#include "hakmem.h"

#include "build_info.h"

const char *hak_version(void)
{
    return HAK_VERSION_STRING;
}

const char *hak_build_info(void)
{
    return "hakmem " HAK_VERSION_STRING ", commit " HAK_BUILD_COMMIT ", " HAK_BUILD_COMPILER
           ", flags " HAK_BUILD_FLAGS ", " HAK_BUILD_TYPE;
}
