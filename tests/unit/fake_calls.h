/* For the fake system's files. */
#ifndef HAK_TEST_FAKE_CALLS_H
#define HAK_TEST_FAKE_CALLS_H

#include <stdbool.h>

#include "fake_os.h"

/* Counts a call; true if it is to fail. */
bool fake_os_refuses(enum fake_calls call);

#endif
