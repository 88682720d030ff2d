"""Names of C++ and Rust as people read them."""

from __future__ import annotations

import unittest

from hakmem_observe import show
from hakmem_observe.names import is_standard, simple
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
            ("shop::bar(int) &", "shop::bar"),
            ("shop::baz(int) const &&", "shop::baz"),
            ("void shop::tq<char>(int) &&", "shop::tq"),
            ("shop::sure() const noexcept", "shop::sure"),
            ("shop::call::operator()(int) const &", "shop::call::operator()"),
            ("shop::item::operator&() const", "shop::item::operator&"),
            ("shop::item::operator&&(shop::item const&) &", "shop::item::operator&&"),
            ("shop::item::operator&", "shop::item::operator&"),
            ("shop::item::operator&&", "shop::item::operator&&"),
            ("<r::A as core::convert::From<usize>>::from", "<r::A as core::convert::From<usize>>::from"),
            ("alloc::slice::<impl [T]>::to_vec_in", "alloc::slice::to_vec_in"),
            ("std::panic::catch_unwind::<r::run::{closure#0}, isize>", "std::panic::catch_unwind"),
            ("std::rt::lang_start::<()>::{closure#0}", "std::rt::lang_start::{closure#0}"),
            ("core::ptr::drop_in_place::<dyn core::ops::Fn() -> i32>", "core::ptr::drop_in_place"),
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

    def test_allocators_of_rust(self) -> None:
        names = ["__rdl_alloc", "__rustc::__rust_alloc", "alloc::alloc::alloc", "<alloc::alloc::Global>::alloc_impl"]
        names += ["<alloc::alloc::Global as core::alloc::Allocator>::allocate"]
        frames = tuple(Frame(name) for name in [*names, "alloc::vec::from_elem::<u8>", "r::main"])
        site = Site((Call(1, None, frames),), Amount(), Amount(), Amount())
        self.assertEqual([frame.name for frame in site.frames()], ["alloc::vec::from_elem", "r::main"])
        deep = Site((Call(1, None, (*frames[:1], Frame("r::grow"), *frames[5:])),), Amount(), Amount(), Amount())
        self.assertEqual([frame.name for frame in show._callers(deep)], ["r::main"])

    def test_standard_libraries(self) -> None:
        for function, standard in (
            ("void std::vector<int>::push_back(int&&)", True),
            ("__gnu_cxx::__stoa<long>(char const*)", True),
            ("core::engine::start(int) const", False),
            ("alloc::vec::from_elem::<u8>", True),
            ("core::ops::function::FnOnce::call_once", True),
            ("<alloc::vec::Vec<r::A> as core::clone::Clone>::clone", True),
            ("<u8 as alloc::slice::hack::ConvertVec>::to_vec::<alloc::alloc::Global>", True),
            ("<r::A as core::convert::From<usize>>::from", False),
            ("<&dyn core::ops::function::Fn<(), Output = i32> as core::ops::function::FnOnce<()>>::call_once", True),
            ("<[r::A]>::sort", False),
            ("<r::A>::new", False),
            ("r::main", False),
        ):
            self.assertEqual(is_standard(function), standard, function)
