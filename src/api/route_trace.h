/* Which way operations went behind the door, and so why: each with the counts that it has changed (heap/counts.h), of which the
 * table of metrics says what they mean. What a magazine serves does not come to the door, and is not written. */
#ifndef HAK_API_ROUTE_TRACE_H
#define HAK_API_ROUTE_TRACE_H

/* From now on, of as many operations as policy says (HAKMEM_TRACE=route), to where reports go. */
void route_trace_start(void);

#endif
