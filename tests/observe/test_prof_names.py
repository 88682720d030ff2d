"""Names of C++ as people read them."""

from __future__ import annotations

import unittest

from hakmem_observe.names import simple
from hakmem_observe.stacks import Amount, Call, Frame, Site


class Names(unittest.TestCase):
    def test_simple(self) -> None:
        for function, short in (
            ("main", "main"),
            ("shop::add(char const*, int) const", "shop::add"),
            ("void shop::add<int, std::less<int> >(std::vector<int>&&)", "shop::add"),
            ("std::map<int, std::string>::operator[](int const&)", "std::map::operator[]"),
            ("std::ostream& operator<< <char>(std::ostream&, char)", "std::ostream& operator<< "),
            ("bool operator< <int>(a<int> const&, a<int> const&)", "bool operator< "),
            ("shop::item::operator->() const", "shop::item::operator->"),
            ("shop::call::operator()(int) const", "shop::call::operator()"),
            ("(anonymous namespace)::helper(int)", "(anonymous)::helper"),
            ("main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()"),
            ("operator new(unsigned long)", "operator new"),
            ("odd>name<", "odd>name<"),
            ("libssl.so.3+0x1200", "libssl.so.3+0x1200"),
            ("", ""),
        ):
            self.assertEqual(simple(function), short, function)

    def test_allocators_are_dropped_from_the_end(self) -> None:
        names = ["operator new(unsigned long)", "std::__new_allocator<int>::allocate(unsigned long, void const*)"]
        names += ["std::allocator_traits<std::allocator<int> >::allocate(std::allocator<int>&, unsigned long)"]
        frames = tuple(Frame(name) for name in [*names, "grow(int)", "malloc", "main"])
        site = Site((Call(1, None, frames),), Amount(), Amount(), Amount())
        self.assertEqual([frame.name for frame in site.frames()], ["grow", "malloc", "main"])
        only = Site((Call(1, None, (Frame("malloc"),)),), Amount(), Amount(), Amount())
        self.assertEqual([frame.name for frame in only.frames()], ["malloc"])
