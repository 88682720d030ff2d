#include "base/alone.h"

bool alone_no_more;
