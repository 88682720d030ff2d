/* Mode research: what the learner decides is written as it happens. */
#ifndef HAK_API_DECISION_LOG_H
#define HAK_API_DECISION_LOG_H

/* A line of report for each decision since the last call. Any thread, at its heartbeat. */
void decision_log(void);

#endif
