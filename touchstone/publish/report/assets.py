"""Scripts and styles of the page, all from installed packages, and the policy that lets the browser run only them."""

import base64
import hashlib
import re
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from touchstone.errors import TouchstoneError

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


def content_security_policy(*scripts: str) -> str:
    """The browser may run these scripts and nothing else, and may not ask for anything."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(each.encode()).digest()).decode()}'" for each in scripts
    )
    styles, images = "style-src 'unsafe-inline'", "img-src data:"
    return f"default-src 'none'; script-src {hashes}; {styles}; {images}; base-uri 'none'; form-action 'none'"


def escaped_for_script(text: str) -> str:
    r"""JSON that can stand in a script element: nothing in it can end the element.

    >>> escaped_for_script('["</script>&\u2028"]')
    '["\\u003c/script\\u003e\\u0026\\u2028"]'
    """
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
