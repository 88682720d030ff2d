"""A profile of many stacks with names, from a seed: for the report, which needs no addresses that are real."""

from __future__ import annotations

import random
import time

from hakmem_observe.stacks import Amount, Call, Frame, Module, Profile, Site

MAIN = Module(0x400000, 0x500000, 0, "/srv/shop/bin/shopd", "11" * 20)
LIBRARY = Module(0x7F0000000000, 0x7F0000100000, 0x1000, "/usr/lib/x86_64-linux-gnu/libssl.so.3", "22" * 20)
HOSTILE = "</script><script>alert(1)//<"

_CALLS = {
    "main": ["run_server", "load_catalogue", "init_tls"],
    "run_server": ["handle_connection", "timer_tick"],
    "handle_connection": ["parse_request", "open_session", "render_page", "tls_read"],
    "parse_request": ["json::parse<char>", "std::vector<std::string>::_M_realloc_insert"],
    "json::parse<char>": ["json::make_object", "json::make_string", "json::parse<char>"],
    "open_session": ["copy_name", "lru::insert"],
    "render_page": ["template_expand", "buffer_grow"],
    "template_expand": ["buffer_grow", "std::string::_M_create"],
    "timer_tick": ["lru::evict", "metrics_flush"],
    "load_catalogue": ["read_file", "index_build", "json::parse<char>"],
    "index_build": ["btree::split", "btree::insert"],
}
_FOREIGN = ("tls_read", "init_tls")
_HEAVY = {"copy_name": 60, "index_build": 9, "btree::split": 6, "read_file": 5, "json::make_string": 3}


def profile(stacks: int = 400, seed: int = 1, hostile: bool = False) -> Profile:
    numbers = random.Random(seed)
    now_ms = time.time_ns() // 1_000_000
    calls: dict[str, Call] = {}

    def call(name: str) -> Call:
        if name not in calls:
            at = 0x1000 * (len(calls) + 1)
            if name in _FOREIGN:
                calls[name] = Call(LIBRARY.start + at, LIBRARY)
            else:
                frame = Frame(name, f"/srv/shop/src/{name.split('::')[0].split('<')[0]}.cc", 10 + len(name))
                calls[name] = Call(MAIN.start + at, MAIN, (frame,))
        return calls[name]

    sites = []
    for _ in range(stacks):
        names = ["main"]
        while names[-1] in _CALLS and (len(names) < 3 or numbers.random() < 0.9):
            names.append(numbers.choice(_CALLS[names[-1]]))
        if hostile:
            names.append(f"{HOSTILE}_{numbers.randrange(4)}")
        size = numbers.choice([24, 40, 64, 200, 1000, 4096, 70_000])
        weight = _HEAVY.get(names[-1], 1)
        blocks = numbers.randrange(20, 2000)
        live = int(blocks * numbers.random() ** 2 * min(weight / 6, 1))
        freed = blocks - live
        ages = [int(freed * part) for part in (0.55, 0.2, 0.1, 0.08, 0.05, 0.02, 0, 0)]
        if weight > 4:
            ages = ages[::-1]
        sites.append(
            Site(
                tuple(call(name) for name in reversed(names)),
                Amount(live * weight, live * weight * size),
                Amount(blocks * weight, blocks * weight * size),
                Amount(live * weight * 9 // 8, live * weight * 9 // 8 * size),
                tuple(ages),
                size,
            )
        )
    peak = sum(site.peak.bytes for site in sites)
    modules = (MAIN, LIBRARY)
    return Profile(4711, 524288, now_ms - 3_725_000, now_ms, 0, peak, modules, tuple(sites))
