"""vl-convert, which draws charts with Chromium's JavaScript engine, refused where that would end the process.

The engine reserves 64 GiB of address space at its start, of which it uses little, and crashes if a limit forbids it.
"""

import mmap
from functools import cache
from types import ModuleType

from touchstone.errors import TouchstoneError

_RESERVED = 65 * 2**30


@cache
def vl_convert() -> ModuleType:
    """The module, once it is known that its engine can start."""
    try:
        mmap.mmap(-1, _RESERVED, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0).close()
    except OSError:
        raise TouchstoneError(
            "charts cannot be drawn in this process: the engine reserves 64 GiB of address space; raise `ulimit -v`"
        ) from None
    import vl_convert

    return vl_convert
