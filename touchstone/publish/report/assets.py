"""Scripts and styles of the page, all from installed packages, and the policy that lets the browser run only them."""

import base64
import contextlib
import hashlib
import os
import re
import stat
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from touchstone.errors import TouchstoneError
from touchstone.storage.files import replacing

_EXPORTS = re.compile(r"export\s*\{([^}]*)\};?")


@cache
def datatables_script() -> str:
    """DataTables as itables ships it, with `window.DataTable` in place of its exports."""
    bundle = _itables_file("dt_bundle.js")
    exports = _EXPORTS.search(bundle)
    named = dict(each.split(" as ")[::-1] for each in exports[1].split(",")) if exports else {}
    if "default" not in named:
        raise TouchstoneError(f"itables {version('itables')}: its bundle has no default export; install version 2.9")
    return "(()=>{" + _EXPORTS.sub(f"window.DataTable={named['default']};", bundle) + "\n})();"


@cache
def datatables_style() -> str:
    """The style sheet that goes with it."""
    return _itables_file("dt_bundle.css")


def _itables_file(name: str) -> str:
    """A file that itables ships. The package itself is not imported: that takes longer than drawing the page."""
    found = find_spec("itables")
    if found is None or found.origin is None:
        raise TouchstoneError("itables is not installed; install touchstone again")
    return (Path(found.origin).parent / "html" / name).read_text(encoding="utf-8")


@cache
def vega_script() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script; kept in the user's cache, because bundling takes seconds."""
    kept = cache_folder() / f"vega-{version('vl-convert-python')}.js"
    if (bundle := _own_text(kept)) and "vegaEmbed" in bundle:
        return bundle
    import vl_convert

    bundle = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    # Without a cache every page costs the seconds, which is no error.
    with contextlib.suppress(OSError, TouchstoneError):
        kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with replacing(kept) as scratch:
            scratch.write_text(bundle, encoding="utf-8")
            scratch.chmod(0o600)
    return bundle


def _own_text(file: Path) -> str | None:
    """The text of a file that nobody else can have written; None if there is none."""
    try:
        status = file.lstat()
        is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022
        return file.read_text(encoding="utf-8") if is_ours else None
    except (OSError, UnicodeDecodeError):
        return None


def cache_folder() -> Path:
    """The user's cache folder, as the XDG base directory specification has it."""
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (chosen if chosen.is_absolute() else Path(os.environ.get("HOME", "/")) / ".cache") / "touchstone"


def content_security_policy(*scripts: str) -> str:
    """The browser may run these scripts and nothing else, and may not ask for anything."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(each.encode()).digest()).decode()}'" for each in scripts
    )
    sources = f"script-src {hashes}" if scripts else "script-src 'none'"
    return (
        f"default-src 'none'; {sources}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def escaped_for_script(text: str) -> str:
    r"""JSON that can stand in a script element: nothing in it can end the element.

    >>> escaped_for_script('["</script>&\u2028"]')
    '["\\u003c/script\\u003e\\u0026\\u2028"]'
    """
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
