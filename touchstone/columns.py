"""Declarations of columns and schemas, from which dataframely's are made when a table is checked.

Only runs check tables, and importing dataframely takes as long as everything else that a command needs. So a
declaration holds the type, the description and the arguments of dataframely's column, and nothing more. Dagster's
definitions are built from them without Polars either.
"""

from functools import cache
from types import new_class
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import dataframely as dy
    import polars as pl


class Column:
    """A column: its one-line description, whether it is part of the row's key, and what must hold in it.

    `rules` are arguments of dataframely's column of the same name, such as `min` and `max`.
    """

    type_name: ClassVar[str]

    def __init__(self, *, description: str, key: bool = False, nullable: bool = False, **rules: Any) -> None:
        self.description, self.key, self.nullable = description, key, nullable
        self._rules = rules

    @property
    def dtype(self) -> "pl.DataType":
        """The type in Polars."""
        import polars as pl

        made: pl.DataType = getattr(pl, self.type_name)()
        return made

    def checked(self) -> "dy.Column":
        """The column that dataframely checks."""
        import dataframely as dy

        kind: type[dy.Column] = getattr(dy, type(self).__name__)
        return kind(nullable=self.nullable, description=self.description, **self._rules)


class String(Column):
    """Text."""

    type_name = "String"


class Int64(Column):
    """Whole numbers."""

    type_name = "Int64"


class Float64(Column):
    """Numbers; neither NaN nor, unless allowed, infinite."""

    type_name = "Float64"


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
        >>> import polars as pl
        >>> Point.checked().is_valid(pl.DataFrame({"x": [-1.0]}))
        False
        """
        return {name: column for name, column in vars(cls).items() if isinstance(column, Column)}

    @classmethod
    @cache
    def checked(cls) -> "type[dy.Schema]":
        """The schema that dataframely checks."""
        import dataframely as dy

        columns = {name: column.checked() for name, column in cls.columns().items()}
        return new_class(cls.__name__, (dy.Schema,), exec_body=lambda namespace: namespace.update(columns))
