"""JSON that keeps every number as it was written, so that no digit is lost before the rules of `cells` parse it."""

import json


class Number(str):
    """A JSON number as it was written."""

    __slots__ = ()


DECODER = json.JSONDecoder(parse_float=Number, parse_int=Number, parse_constant=Number)


def encode(value: object) -> str:
    """JSON text with every number as it was written."""
    if isinstance(value, dict):
        members = (f"{json.dumps(key, ensure_ascii=False)}: {encode(each)}" for key, each in value.items())
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(encode, value)) + "]"
    return str(value) if isinstance(value, Number) else json.dumps(value, ensure_ascii=False)
