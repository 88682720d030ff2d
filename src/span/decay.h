/*
 * When free memory is given back: a pure function of time, history and policy.
 *
 * Memory goes back once it has been free for a delay. Where a program takes again what it has just given back, it pays
 * for page faults and gains nothing: then memory is kept for twice as long, up to 2^doubled_most delays, until the program has
 * been calm for a while. The caller guards the state.
 */
#ifndef HAK_SPAN_DECAY_H
#define HAK_SPAN_DECAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct decay {
    uint64_t step_ms;  /* when the last step was made */
    size_t given_back; /* bytes, lately: halved at each step */
    size_t regretted;  /* bytes taken again soon after they were given back, since the last step */
    uint32_t doubled;  /* memory is kept for 2^doubled delays */
    uint32_t calm;     /* steps since the last regret */
};

/* Was memory that is taken now given back too early, at `given_back_ms`? */
bool decay_is_regret(uint64_t now_ms, uint64_t given_back_ms, uint64_t delay_ms);

/* Learns from what was given back and regretted; makes a step if a delay has passed since the last. */
void decay_learn(struct decay *decay, uint64_t now_ms, uint64_t delay_ms, uint32_t doubled_most);

/* What has been free since before this time should be given back. */
uint64_t decay_horizon(const struct decay *decay, uint64_t now_ms, uint64_t delay_ms);

#endif
