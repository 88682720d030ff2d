/* The threads of the process, as the kernel numbers them. */
#ifndef HAK_OS_TASKS_H
#define HAK_OS_TASKS_H

/* Calls look(task, argument) for each thread with its number, in decimal; one that begins or ends meanwhile may be left out.
 * Without /proc there are no calls. */
void os_each_task(void (*look)(const char *task, void *argument), void *argument);

#endif
