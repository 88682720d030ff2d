/*
 * What the process shows to tools outside, and what they ask of it. A tool of the same user finds the object by its name, reads
 * memory (process_vm_readv), and asks by writing the request's words (process_vm_writev). The next thread that comes to the door
 * serves it. docs/control.md is the contract; who changes the layout raises CONTROL_VERSION (a field that
 * was unused may tell something new, if 0 means that it does not).
 *
 * The process believes nothing but the request's words, and a tool that dies half way leaves at most a request.
 */
#ifndef HAK_HEAP_CONTROL_H
#define HAK_HEAP_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

enum { CONTROL_VERSION = 4, CONTROL_PATH_MOST = 512 };

enum control_request {
    REQUEST_NONE,
    REQUEST_PROFILE_START, /* argument: bytes between two samples; 0: as many as usual */
    REQUEST_PROFILE_STOP,
    REQUEST_PROFILE_DUMP,  /* to path */
    REQUEST_PURGE,         /* as hak_purge(HAK_PURGE_CACHED) */
    REQUEST_STATS,         /* to path, JSON */
    REQUEST_ELSEWHERE = 7, /* the process's own: a signal has asked for a report, or the live page has words with a request */
    REQUEST_MODE,          /* path: its name */
};

struct control_words {
    uint32_t request; /* enum control_request; the tool writes what it needs first */
    uint32_t served;  /* requests, so far */
    int32_t result;   /* of the last one: 0, or an error's number */
    uint32_t scratch; /* of the process's own */
    uint64_t argument;
    char path[CONTROL_PATH_MOST];
};

/* Where a tool finds the heaps, and what is in them: addresses, and offsets within a heap. */
struct control_layout {
    uint64_t heaps;   /* of the word that points to the newest */
    uint64_t classes; /* of the table of size classes: 4 bytes of size each */
    uint32_t class_stride;
    uint32_t class_count;
    uint32_t unit_bytes;
    uint32_t heap_bytes;
    uint32_t next;
    uint32_t number;      /* 4 bytes */
    uint32_t tls;
    uint32_t thread;      /* 4 bytes */
    uint32_t budget;
    uint32_t twin_budget;
    uint32_t granted;
    uint32_t bins;
    uint32_t bin_stride;  /* a word: the top of its magazine */
    uint32_t shelves;
    uint32_t shelf_stride;
    uint32_t slots;       /* in a shelf */
    uint32_t capacity;    /* in a shelf, 2 bytes */
    uint32_t blocks_out;  /* in a shelf, 8 bytes */
    uint32_t counts;      /* of the pointer to the heap's counts */
    uint32_t holes;       /* in a shelf, 2 bytes */
    uint64_t superslabs;  /* of the word with the table's address */
    uint64_t superslab_end; /* of the word: entries */
    uint64_t arena_base;  /* of the word */
    uint64_t tags;        /* of the word with the address of one word a unit */
    uint64_t spans;       /* the same, of pointers to slabs and others */
    uint32_t superslab_bytes; /* of an entry */
    uint32_t superslab_units;
    uint32_t used;        /* in an entry: 16 bytes */
    uint32_t dirty;       /* the same */
    uint32_t committed;   /* 1 byte */
    uint32_t tag_kinds;
    uint32_t slab_blocks; /* in a slab, 4 bytes */
    uint32_t slab_free;
    uint32_t slab_class;  /* 1 byte */
    uint32_t unused_too;
};

struct hak_control {
    char magic[8];
    uint32_t version;
    uint32_t bytes; /* of this struct */
    struct control_words words;
    const struct metric *metrics;
    uint32_t metric_count;
    uint32_t metric_bytes; /* of one */
    const struct metric_text *texts; /* as many */
    uint32_t text_bytes;
    uint32_t base_count;
    const void *const *bases; /* where metrics of the process are */
    struct control_layout layout;
};

/* The one symbol of data that the library shows. */
extern __attribute__((visibility("default"))) struct hak_control hak_control;

/* Does somebody ask? */
ALWAYS_INLINE bool control_is_asked(void)
{
    return load_relaxed(&hak_control.words.request) != REQUEST_NONE;
}

#endif
