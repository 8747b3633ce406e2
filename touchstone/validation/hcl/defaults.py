"""Whether a variable's default fits its type, in the cases that need no evaluation."""

from collections.abc import Iterator

from touchstone.validation.hcl.tree import Block, source
from touchstone.validation.hcl.types import conversion_problem, type_of_constraint
from touchstone.validation.hcl.values import literal_value
from touchstone.validation.protocol import Diagnostic

_SUMMARY = "Invalid default value for variable"


def default_errors(variable: Block) -> Iterator[Diagnostic]:
    """The error for a default that cannot be converted to the variable's type."""
    default, kind, nullable = (variable.body.arguments.get(name) for name in ("default", "type", "nullable"))
    if default is None:
        return
    value, detail = literal_value(variable.text, default.expression), ""
    if value.null and nullable is not None and source(nullable.expression) == "false":
        detail = "A null default value is not valid when nullable=false."
    elif kind is not None and (problem := conversion_problem(value, type_of_constraint(kind.expression))):
        detail = f"This default value is not compatible with the variable's type constraint: {problem}."
    if detail:
        yield variable.text.error(variable.text.span(default.expression), _SUMMARY, detail)
