"""Generates large C and C++ sources, the same every time."""

from __future__ import annotations

import random

C_HEAD = """#include <stdint.h>
#include <stdio.h>
#include <string.h>
struct node { struct node *left, *right; uint64_t key; double weight; char name[24]; };
static uint64_t mix(uint64_t x) { x ^= x >> 31; x *= 0x9e3779b97f4a7c15u; return x ^ (x >> 29); }
"""

C_FUNCTION = """
uint64_t function_{n}(struct node *nodes, uint64_t count, uint64_t seed)
{{
    uint64_t state[8] = {{ {a}u, seed, count, mix(seed + {b}) }};
    double total = {c}.5;
    for (uint64_t i = 0; i < count % {d} + 3; i++) {{
        struct node *node = &nodes[(seed + i * {e}) % {f}];
        switch (mix(node->key + i) % 6) {{
        case 0: state[i % 8] += node->key * {a}u; break;
        case 1: total += node->weight / (double)(i + {b}); break;
        case 2: memcpy(node->name, "name {n}", sizeof "name {n}"); break;
        case 3: node->left = node->right; node->right = &nodes[i % {f}]; break;
        case 4: for (int k = 0; k < {g}; k++) state[k % 8] ^= mix(state[(k + 1) % 8] + (uint64_t)k); break;
        default: state[{h}] = (state[{h}] << {g}) | (node->key >> {d} % 60); break;
        }}
        if (node->left && node->left->key > {e}u + i)
            total -= node->left->weight * {c};
    }}
    {call}
    return state[0] ^ state[1] ^ state[{h}] ^ (uint64_t)total;
}}
"""

CXX_HEAD = """#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>
template <int N> struct fib { static constexpr long value = fib<N - 1>::value + fib<N - 2>::value; };
template <> struct fib<0> { static constexpr long value = 0; };
template <> struct fib<1> { static constexpr long value = 1; };
template <int N, int M> struct ackermann {
    static constexpr int value = ackermann<N - 1, ackermann<N, M - 1>::value>::value;
};
template <int M> struct ackermann<0, M> { static constexpr int value = M + 1; };
template <int N> struct ackermann<N, 0> { static constexpr int value = ackermann<N - 1, 1>::value; };
static_assert(ackermann<2, 60>::value == 123, "");
template <int... I> constexpr long sum_of(std::integer_sequence<int, I...>) { return (fib<I % 80>::value + ... + 0L); }
static_assert(sum_of(std::make_integer_sequence<int, 400>{}) > 0, "");
"""

CXX_PART = """
struct item_{n} {{ int id; std::string name; std::variant<int, double, std::string, std::vector<item_{n}>> value;
    bool operator<(const item_{n} &other) const {{ return std::tie(id, name) < std::tie(other.id, other.name); }} }};
std::string part_{n}(const std::vector<int> &input)
{{
    std::map<std::string, std::set<item_{n}>> groups;
    std::unordered_map<int, std::shared_ptr<item_{n}>> index;
    for (int i : input) {{
        auto item = std::make_shared<item_{n}>(item_{n}{{i, "item" + std::to_string(i % {a}), i * {b}.25}});
        groups[item->name].insert(*item);
        index.emplace(i, std::move(item));
    }}
    std::ostringstream out;
    std::function<void(const item_{n} &)> print = [&](const item_{n} &item) {{
        std::visit([&](const auto &value) {{
            using type = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<type, std::vector<item_{n}>>)
                for (const auto &child : value) print(child);
            else out << item.id << ':' << value << ' ';
        }}, item.value);
    }};
    for (const auto &[name, items] : groups) {{
        out << name << '=' << std::accumulate(items.begin(), items.end(), 0L,
            [](long sum, const item_{n} &item) {{ return sum + item.id; }}) << ';';
        std::for_each(items.begin(), items.end(), print);
    }}
    std::vector<std::pair<int, std::shared_ptr<item_{n}>>> sorted(index.begin(), index.end());
    std::stable_sort(sorted.begin(), sorted.end(),
        [](const auto &l, const auto &r) {{ return l.second->name < r.second->name; }});
    return std::regex_replace(out.str(), std::regex("item([0-9]+)"), "{n}-$1");
}}
"""


def c_source(functions: int = 1000) -> str:
    """A C source of about 21 lines a function."""
    chance = random.Random(7)
    parts = [C_HEAD]
    for n in range(functions):
        call = f"state[2] += function_{chance.randrange(n)}(nodes, count / 2, seed + {n});" if n else ""
        values = {letter: chance.randrange(2, 40) for letter in "abcdef"}
        parts.append(C_FUNCTION.format(n=n, call=call, g=chance.randrange(3, 20), h=chance.randrange(8), **values))
    return "".join(parts)


def cxx_source(parts: int = 4) -> str:
    """A C++ source that instantiates much of the standard library once per part."""
    chance = random.Random(8)
    text = [CXX_PART.format(n=n, a=chance.randrange(2, 50), b=chance.randrange(50)) for n in range(parts)]
    return CXX_HEAD + "".join(text)
