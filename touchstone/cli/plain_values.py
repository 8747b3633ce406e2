"""Command-line values that need no conversion, taken as they are.

Typer converts every value with pydantic, even `None`, and importing pydantic takes as long as the rest of a small
command. What is not plain here goes Typer's way, and so does all that is wrong: messages are Typer's.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from typer.core import TyperGroup


class PlainValues:
    """A mixin of commands and groups whose parameters import pydantic only for values that are not plain."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, `--help` among them."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if not isinstance(vars(param).get("get_runtime_param"), _Conversion):
                param.get_runtime_param = _Conversion(param.get_runtime_param)
        return params


class PlainValuesGroup(PlainValues, TyperGroup):
    """A group of commands, itself with plain values."""


class _Conversion:
    """Stands for Typer's conversion of a parameter, which it makes only for values that are not plain."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __call__(self) -> "_Conversion":
        return self

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as its parameter's type."""
        is_list = param.multiple or param.nargs == -1
        if value is None:
            return () if is_list else None
        wanted, info = param.type_descriptor.annotation, param.type_descriptor.parameter_info
        try:
            if is_list and isinstance(value, (list, tuple)):
                return [_plain(each, get_args(wanted)[0], info) for each in value]
            return _plain(value, wanted, info)
        except ValueError:
            return self._make().coerce(value, param=param, ctx=ctx)


def _plain(value: Any, wanted: Any, info: Any) -> Any:
    """A plain value as its type; a ValueError if it is not plain."""
    if info.parser is not None:
        return info.parser(value)
    if wanted in (int, float, Path) and isinstance(value, wanted):
        return value  # A default.
    if isinstance(value, str):
        if wanted is str or (get_origin(wanted) is Literal and value in get_args(wanted)):
            return value
        if wanted is Path and _is_any_path(info) and (os.access(value, os.R_OK) or not os.path.lexists(value)):
            return Path(value)
    raise ValueError(value)


def _is_any_path(info: Any) -> bool:
    """Whether a parameter takes files and folders alike, whether they exist or not."""
    return info.file_okay and info.dir_okay and not (info.exists or info.writable or info.resolve_path)
