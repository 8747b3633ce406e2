"""Terraform's JSON syntax: the content of `.tf.json` files, or their parse errors."""

import json
from collections.abc import Mapping

from touchstone.validation.hcl.positions import SourceText
from touchstone.validation.protocol import Diagnostic


def read_json(text: SourceText) -> tuple[list[Mapping[str, object]], Diagnostic | None]:
    """The root objects of a file, or its error."""
    try:
        content = json.loads(text.data.decode("utf-8", "replace"))  # Terraform accepts invalid UTF-8 in strings
    except json.JSONDecodeError as broken:
        span = text.point(len(broken.doc[: broken.pos].encode("utf-8")))
        return [], text.error(span, "Invalid JSON", f"{broken.msg}.")
    except (RecursionError, ValueError) as broken:
        return [], Diagnostic("error", "Invalid JSON", f"{broken}.", text.path)
    roots = content if isinstance(content, list) else [content]
    if all(isinstance(root, dict) for root in roots):
        return roots, None
    detail = "The root value in a JSON-based configuration must be either a JSON object or a JSON array of objects."
    return [], text.error(text.point(0), "Root value must be object", detail)
