/* Who is told of heartbeats and forks: whoever watches the process, and the learner. */
#ifndef HAK_API_LEARNING_H
#define HAK_API_LEARNING_H

void learning_start(void);

#endif
