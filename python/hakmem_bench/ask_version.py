"""ask_version.py mi_version|mallctl: the word on its version of the allocator that serves this process."""

import ctypes
import sys


def main(how: str) -> str:
    library = ctypes.CDLL(None)
    if how == "mi_version":
        # 1.2.3 is 123 in old versions, 10203 in new ones.
        number = str(library.mi_version())
        parts = (number[0], number[1], number[2:]) if len(number) <= 4 else (number[:-4], number[-4:-2], number[-2:])
        return ".".join(str(int(part)) for part in parts)
    text = ctypes.c_char_p()
    length = ctypes.c_size_t(ctypes.sizeof(text))
    library.mallctl(b"version", ctypes.byref(text), ctypes.byref(length), None, ctypes.c_size_t(0))
    return (text.value or b"unknown").decode()


print(main(*sys.argv[1:]))
