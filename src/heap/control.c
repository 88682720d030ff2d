#include "heap/control.h"

#include <stddef.h>

#include "arena/arena.h"
#include "config/size_class.h"
#include "heap/heap.h"
#include "heap/life.h"
#include "span/superslab.h"

_Static_assert(offsetof(struct hak_control, metrics) == 552 && offsetof(struct hak_control, layout) == 592
                   && sizeof(struct control_layout) == 176,
               "tools know this layout");

#define ADDRESS(object) ((uint64_t)(uintptr_t)&(object))

struct hak_control hak_control = {
    .magic = "hakmem",
    .version = CONTROL_VERSION,
    .bytes = sizeof(struct hak_control),
    .layout = {
        .heaps = ADDRESS(life_newest),
        .classes = ADDRESS(size_classes[0].size),
        .class_stride = sizeof size_classes[0],
        .class_count = SIZE_CLASSES,
        .unit_bytes = UNIT_SIZE,
        .heap_bytes = sizeof(struct heap),
        .next = offsetof(struct heap, next),
        .number = offsetof(struct heap, number),
        .tls = offsetof(struct heap, tls),
        .thread = offsetof(struct heap, thread.number),
        .budget = offsetof(struct heap, view.budget),
        .twin_budget = offsetof(struct heap, twin.budget),
        .granted = offsetof(struct heap, granted),
        .bins = offsetof(struct heap, view.top),
        .bin_stride = sizeof(void **),
        .shelves = offsetof(struct heap, shelf),
        .shelf_stride = sizeof(struct shelf),
        .slots = offsetof(struct shelf, slots),
        .capacity = offsetof(struct shelf, capacity),
        .blocks_out = offsetof(struct shelf, blocks_out),
        .counts = offsetof(struct heap, counts),
        .holes = offsetof(struct shelf, holes),
        .superslabs = ADDRESS(arena.superslabs),
        .superslab_end = ADDRESS(superslab_end),
        .arena_base = ADDRESS(arena.base),
        .tags = ADDRESS(arena.tags),
        .spans = ADDRESS(arena.spans),
        .superslab_bytes = ARENA_SUPERSLAB_ENTRY,
        .superslab_units = SUPERSLAB_UNITS,
        .used = offsetof(struct superslab, used),
        .dirty = offsetof(struct superslab, dirty),
        .committed = offsetof(struct superslab, committed),
        .tag_kinds = TAG_KINDS,
        .slab_blocks = offsetof(struct slab, blocks),
        .slab_free = offsetof(struct slab, free),
        .slab_class = offsetof(struct slab, class),
    },
};
