"""Declarations of columns and schemas, and the rules that their values must keep.

Importing dataframely costs a short run more than all its checks, so a table is checked with the few rules that are used
here, written as dataframely writes them, which a test holds equal to dataframely's own.
Dagster's definitions are built from the declarations without Polars either.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import polars as pl


# What a value must satisfy, by the name of dataframely's argument.
_TESTS: "dict[str, Callable[[pl.Expr, Any], pl.Expr]]" = {
    "check": lambda values, holds: holds(values),
    "min": lambda values, least: values >= least,
    "max": lambda values, most: values <= most,
    "min_length": lambda values, least: values.str.len_bytes() >= least,
    "max_length": lambda values, most: values.str.len_bytes() <= most,
}


class Column:
    """A column: its one-line description, whether it is part of the row's key, and what must hold in it.

    `primary_key` adds the rule that these columns together identify a row. `rules` are arguments of dataframely's
    column of the same name: `min`, `max`, `min_length`, `max_length` and `check`; `arguments` are all of them.
    """

    type_name: ClassVar[str]

    def __init__(
        self, *, description: str, key: bool = False, nullable: bool = False, primary_key: bool = False, **rules: Any
    ) -> None:
        self.description, self.key, self.nullable, self.primary_key = description, key, nullable, primary_key
        self._rules = rules
        self.arguments = {"nullable": nullable, "primary_key": primary_key, "description": description, **rules}

    def rules(self, values: "pl.Expr") -> "dict[str, pl.Expr]":
        """What must hold for every value, by name. Where it is null, it holds."""
        required = {} if self.nullable else {"nullability": values.is_not_null()}
        return required | {name: _TESTS[name](values, bound) for name, bound in self._rules.items()}

    @property
    def dtype(self) -> "pl.DataType":
        """The type in Polars."""
        import polars as pl

        made: pl.DataType = getattr(pl, self.type_name)()
        return made


class String(Column):
    """Text."""

    type_name = "String"


class Int64(Column):
    """Whole numbers."""

    type_name = "Int64"


class Float64(Column):
    """Numbers; neither NaN nor, unless allowed, infinite."""

    type_name = "Float64"

    def __init__(self, *, allow_inf: bool = False, **rules: Any) -> None:
        super().__init__(**rules)
        self.allow_inf = allow_inf
        self.arguments["allow_inf"] = allow_inf

    def rules(self, values: "pl.Expr") -> "dict[str, pl.Expr]":
        """The rules of every column, and that values are numbers."""
        finite = {} if self.allow_inf else {"inf": ~values.is_infinite()}
        return super().rules(values) | finite | {"nan": ~values.is_nan()}


class Bool(Column):
    """True or false."""

    type_name = "Boolean"


class Schema:
    """The columns of a table: the attributes of a subclass, in order."""

    @classmethod
    def columns(cls) -> dict[str, Column]:
        """The columns by name.

        >>> class Point(Schema):
        ...     x = Float64(description="Abscissa.", min=0)
        >>> [(name, column.dtype) for name, column in Point.columns().items()]
        [('x', Float64)]
        """
        return {name: column for name, column in vars(cls).items() if isinstance(column, Column)}
