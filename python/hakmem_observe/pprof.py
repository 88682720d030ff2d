"""Profiles as pprof reads them: profile.proto, compressed. Our own files are read back too."""

from __future__ import annotations

import gzip
import re
import zlib
from typing import Any

from google.protobuf.message import DecodeError

from hakmem_observe import pprof_schema
from hakmem_observe.heap_profile import NotAProfileError
from hakmem_observe.stacks import ALLOCATORS, LIFETIMES, Amount, Call, Frame, Module, Profile, Site

MAGIC = b"\x1f\x8b"

_AMOUNTS = (("inuse", "live"), ("alloc", "allocated"), ("peak", "peak"))
_TYPES = [f"{name}_{unit}" for name, _ in _AMOUNTS for unit in ("objects", "space")]
_UNITS = {"objects": "count", "space": "bytes"}
_OWN = re.compile(
    r"hakmem-profile 1 pid=(\d{1,18}) started_ms=(\d{1,18}) now_ms=(\d{1,18}) dropped=(\d{1,18})"
    r" peak_bytes=(\d{1,18})"
)
_LIFETIMES = "lifetimes"
_NOTE = "note: "
_COUNT = re.compile(r"[0-9]{1,20}")
_MOST_BYTES = 1 << 28
"""Of a file when uncompressed: more is refused. What is made of it needs many times as much memory."""


class _Writer:
    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.message = pprof_schema.Message()
        self.strings: dict[str, int] = {"": 0}
        self.functions: dict[tuple[str, str], int] = {}
        self.calls: dict[Call, int] = {}
        self.modules = {module: number for number, module in enumerate(profile.modules, start=1)}

    def text(self, text: str) -> int:
        """Names of files may be no UTF-8, which is all that protobuf has."""
        return self.strings.setdefault(text.encode(errors="replace").decode(), len(self.strings))

    def write(self) -> bytes:
        profile, message = self.profile, self.message
        for name in _TYPES:
            message.sample_type.add(type=self.text(name), unit=self.text(_UNITS[name.partition("_")[2]]))
        message.default_sample_type = self.text("inuse_space")
        message.period_type.type, message.period_type.unit = self.text("space"), self.text("bytes")
        message.period = profile.rate
        message.time_nanos = profile.now_ms * 1_000_000
        message.duration_nanos = max(profile.now_ms - profile.started_ms, 0) * 1_000_000
        message.drop_frames = self.text(ALLOCATORS)
        own = (
            f"hakmem-profile 1 pid={profile.pid} started_ms={profile.started_ms} now_ms={profile.now_ms}"
            f" dropped={profile.dropped} peak_bytes={profile.peak_bytes}"
        )
        message.comment.extend(self.text(text) for text in (own, *(_NOTE + note for note in profile.notes)))
        for site in profile.sites:
            self._site(site)
        self._modules()
        message.string_table.extend(self.strings)
        return gzip.compress(message.SerializeToString(deterministic=True), mtime=0)

    def _modules(self) -> None:
        """After the sites, when all calls are known."""
        frames: dict[Module | None, list[tuple[Frame, ...]]] = {}
        for call in self.calls:
            frames.setdefault(call.module, []).append(call.frames)
        for module, number in self.modules.items():
            self._module(module, number, frames.get(module, []))

    def _module(self, module: Module, number: int, frames: list[tuple[Frame, ...]]) -> None:
        self.message.mapping.add(
            id=number,
            memory_start=module.start,
            memory_limit=module.limit,
            file_offset=module.offset,
            filename=self.text(module.path),
            build_id=self.text(module.build_id),
            has_functions=any(frames),
            has_filenames=any(frame.file for one in frames for frame in one),
            has_line_numbers=any(frame.line for one in frames for frame in one),
            has_inline_frames=any(len(one) > 1 for one in frames),
        )

    def _site(self, site: Site) -> None:
        sample = self.message.sample.add()
        sample.location_id.extend(self._call(call) for call in site.calls)
        for _, what in _AMOUNTS:
            amount = site.amount(what)
            sample.value.extend((amount.objects, amount.bytes))
        sample.label.add(key=self.text("bytes"), num=site.block_bytes, num_unit=self.text("bytes"))
        if any(site.lifetimes):
            words = " ".join(str(count) for count in site.lifetimes)
            sample.label.add(key=self.text(_LIFETIMES), str=self.text(words))

    def _call(self, call: Call) -> int:
        number = self.calls.get(call)
        if number is None:
            number = self.calls[call] = len(self.calls) + 1
            mapping = self.modules[call.module] if call.module else 0
            location = self.message.location.add(id=number, mapping_id=mapping, address=call.address)
            for frame in call.frames:
                location.line.add(function_id=self._function(frame), line=frame.line)
        return number

    def _function(self, frame: Frame) -> int:
        key = (frame.function, frame.file)
        number = self.functions.get(key)
        if number is None:
            number = self.functions[key] = len(self.functions) + 1
            name = self.text(frame.function)
            self.message.function.add(id=number, name=name, system_name=name, filename=self.text(frame.file))
        return number


def encode(profile: Profile) -> bytes:
    try:
        return _Writer(profile).write()
    except (ValueError, OverflowError) as error:
        raise NotAProfileError(f"it has a number that pprof cannot hold: {error}") from error


def decode(data: bytes) -> Profile:
    """Of files that `encode` wrote."""
    try:
        unpacker = zlib.decompressobj(wbits=31)
        plain = unpacker.decompress(data, _MOST_BYTES)
        if unpacker.unconsumed_tail:
            raise NotAProfileError(f"a profile of more than {_MOST_BYTES >> 20} MiB")
        if not unpacker.eof:
            raise NotAProfileError("truncated")
        message = pprof_schema.Message.FromString(plain)
    except (zlib.error, DecodeError) as error:
        raise NotAProfileError("not a compressed pprof profile, or a damaged one") from error
    try:
        return _profile(message)
    except (IndexError, KeyError, ValueError) as error:
        raise NotAProfileError("a damaged pprof profile") from error


def _profile(message: Any) -> Profile:
    strings = message.string_table
    comments = [strings[one] for one in message.comment]
    own = _OWN.fullmatch(comments[0]) if comments else None
    if not own or [strings[one.type] for one in message.sample_type] != _TYPES:
        raise NotAProfileError("a pprof profile, but not one that hakmem wrote")
    modules = {
        one.id: Module(
            one.memory_start, one.memory_limit, one.file_offset, strings[one.filename], strings[one.build_id]
        )
        for one in message.mapping
    }
    functions = {one.id: (strings[one.name], strings[one.filename]) for one in message.function}
    calls = {
        one.id: Call(
            one.address,
            modules.get(one.mapping_id),
            tuple(Frame(*functions[line.function_id], line.line) for line in one.line),
        )
        for one in message.location
    }
    sites = []
    for sample in message.sample:
        values = list(sample.value)
        if len(values) != len(_TYPES):
            raise NotAProfileError("a damaged pprof profile")
        labels = {strings[label.key]: label for label in sample.label}
        words = strings[labels[_LIFETIMES].str].split() if _LIFETIMES in labels else ["0"] * len(LIFETIMES)
        if len(words) != len(LIFETIMES) or not all(map(_COUNT.fullmatch, words)):
            raise ValueError(words)
        live, allocated, peak = (Amount(*values[at : at + 2]) for at in (0, 2, 4))
        block_bytes = labels["bytes"].num if "bytes" in labels else 0
        stack = tuple(calls[number] for number in sample.location_id)
        lifetimes = tuple(int(word) for word in words)
        sites.append(Site(stack, live, allocated, peak, lifetimes, block_bytes))
    pid, started_ms, now_ms, dropped, peak_bytes = (int(word) for word in own.groups())
    notes = tuple(comment.removeprefix(_NOTE) for comment in comments if comment.startswith(_NOTE))
    return Profile(
        pid, message.period, started_ms, now_ms, dropped, peak_bytes, tuple(modules.values()), tuple(sites), notes
    )
