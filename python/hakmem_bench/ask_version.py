"""ask_version.py FUNCTION: what the allocator that serves this process says of its version, by `…mi_version` or
`…mallctl`; by another function, whether something is so: 1 or 0."""

import ctypes
import sys


def main(how: str) -> str:
    function = getattr(ctypes.CDLL(None), how)
    if how.endswith("mi_version"):
        # 1.2.3 is 123 in old versions, 10203 in new ones.
        number = str(function())
        parts = (number[0], number[1], number[2:]) if len(number) <= 4 else (number[:-4], number[-4:-2], number[-2:])
        return ".".join(str(int(part)) for part in parts)
    if not how.endswith("mallctl"):
        function.restype = ctypes.c_bool
        return str(int(function()))
    text = ctypes.c_char_p()
    length = ctypes.c_size_t(ctypes.sizeof(text))
    function(b"version", ctypes.byref(text), ctypes.byref(length), None, ctypes.c_size_t(0))
    return (text.value or b"unknown").decode()


print(main(*sys.argv[1:]))
