#include "base/claim.h"

uint32_t claim_forks;
