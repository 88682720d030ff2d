/* The part of the statistics that says what is known of sites (large/site.h). */
#ifndef HAK_API_SITES_JSON_H
#define HAK_API_SITES_JSON_H

#include "os/out.h"

/* "sites", if there are any. Times are by doublings: less than 1 ms, 2 ms, 4 ms and so on. */
void sites_json(struct out *out);

#endif
