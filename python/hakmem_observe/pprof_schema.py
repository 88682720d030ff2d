"""The messages of pprof's profile.proto, from the table below: nothing has to be generated or kept in step."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# Name, number, type ("*": repeated). See github.com/google/pprof/blob/main/proto/profile.proto.
_MESSAGES: dict[str, tuple[tuple[str, int, str], ...]] = {
    "ValueType": (("type", 1, "int64"), ("unit", 2, "int64")),
    "Label": (("key", 1, "int64"), ("str", 2, "int64"), ("num", 3, "int64"), ("num_unit", 4, "int64")),
    "Sample": (("location_id", 1, "uint64*"), ("value", 2, "int64*"), ("label", 3, "Label*")),
    "Mapping": (
        ("id", 1, "uint64"),
        ("memory_start", 2, "uint64"),
        ("memory_limit", 3, "uint64"),
        ("file_offset", 4, "uint64"),
        ("filename", 5, "int64"),
        ("build_id", 6, "int64"),
        ("has_functions", 7, "bool"),
        ("has_filenames", 8, "bool"),
        ("has_line_numbers", 9, "bool"),
        ("has_inline_frames", 10, "bool"),
    ),
    "Line": (("function_id", 1, "uint64"), ("line", 2, "int64"), ("column", 3, "int64")),
    "Location": (
        ("id", 1, "uint64"),
        ("mapping_id", 2, "uint64"),
        ("address", 3, "uint64"),
        ("line", 4, "Line*"),
        ("is_folded", 5, "bool"),
    ),
    "Function": (
        ("id", 1, "uint64"),
        ("name", 2, "int64"),
        ("system_name", 3, "int64"),
        ("filename", 4, "int64"),
        ("start_line", 5, "int64"),
    ),
    "Profile": (
        ("sample_type", 1, "ValueType*"),
        ("sample", 2, "Sample*"),
        ("mapping", 3, "Mapping*"),
        ("location", 4, "Location*"),
        ("function", 5, "Function*"),
        ("string_table", 6, "string*"),
        ("drop_frames", 7, "int64"),
        ("keep_frames", 8, "int64"),
        ("time_nanos", 9, "int64"),
        ("duration_nanos", 10, "int64"),
        ("period_type", 11, "ValueType"),
        ("period", 12, "int64"),
        ("comment", 13, "int64*"),
        ("default_sample_type", 14, "int64"),
        ("doc_url", 15, "int64"),
    ),
}
_PACKAGE = "perftools.profiles"
_FIELD = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    "int64": _FIELD.TYPE_INT64,
    "uint64": _FIELD.TYPE_UINT64,
    "bool": _FIELD.TYPE_BOOL,
    "string": _FIELD.TYPE_STRING,
}


def _pool() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field_name, number, kind in fields:
            one = message.field.add(name=field_name, number=number)
            one.label = _FIELD.LABEL_REPEATED if kind.endswith("*") else _FIELD.LABEL_OPTIONAL
            base = kind.rstrip("*")
            if base in _TYPES:
                one.type = _TYPES[base]
            else:
                one.type = _FIELD.TYPE_MESSAGE
                one.type_name = f".{_PACKAGE}.{base}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


Message: Any = message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.Profile"))
"""The class of the message Profile."""
