"""The scripts of Vega, Vega-Lite and Vega-Embed as one text, from vl-convert, kept between calls.

Making it takes seconds. It runs in the reader's browser, so it is kept where only this user writes: never among
results, which may come from somebody else.
"""

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

from touchstone.locations import cache_folder
from touchstone.publish.charts.engine import vl_convert
from touchstone.regular_files import read_bytes
from touchstone.storage.files import replacing

_GLOBALS = "window.vegaEmbed = vegaEmbed; window.vega = vega; window.vegaLite = vegaLite;"
_MAX_BYTES = 20_000_000


@cache
def javascript() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that defines `vegaEmbed`."""
    folder = cache_folder()
    file = folder / f"vega-{version('vl-convert-python')}.js" if folder is not None else None
    made = _kept(file) if file is not None else None
    if made is not None:
        return made
    made = str(vl_convert().javascript_bundle(_GLOBALS))
    if file is not None:
        _keep(file, made)
    return made


def _kept(file: Path) -> str | None:
    """The script in the file, if it is whole: its first line is the digest of the rest."""
    try:
        digest, _, script = read_bytes(file, _MAX_BYTES).partition(b"\n")
        return script.decode() if digest.decode() == _digest(script) else None
    except (OSError, UnicodeDecodeError):
        return None


def _keep(file: Path, script: str) -> None:
    content = script.encode()
    try:
        with replacing(file) as scratch:
            scratch.write_bytes(_digest(content).encode() + b"\n" + content)
    except OSError:
        # Without room for it, the next call makes it again.
        return


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
