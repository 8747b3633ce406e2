"""Condition blocks: variable validations, pre- and postconditions, assertions."""

from collections.abc import Iterator

from touchstone.validation.hcl.body_schema import BodySchema, body_errors
from touchstone.validation.hcl.expressions import traversals_and_calls
from touchstone.validation.hcl.tree import Block
from touchstone.validation.protocol import Diagnostic

_SCHEMA = BodySchema(("condition", "error_message"), ("condition", "error_message"))


def condition_errors(block: Block, owner: Block | None = None) -> Iterator[Diagnostic]:
    """The errors of one condition block; `owner` is the root block that contains it, if its kind matters."""
    yield from body_errors(block, _SCHEMA)
    condition = block.body.arguments.get("condition")
    if condition is None:
        return
    span = block.text.span(condition.expression)
    found, _ = traversals_and_calls(condition.expression)
    if not found:
        detail = (
            "The condition expression must refer to at least one object from elsewhere in the configuration, or else "
            "its result would not be checking anything."
        )
        yield block.text.error(span, f"Invalid {block.kind} expression", detail)
    if owner is not None and owner.kind == "variable":
        name = owner.labels[0]
        if not any(
            traversal.root == "var" and [step.name for step in traversal.steps[:1]] == [name] for traversal in found
        ):
            detail = f'The condition for variable "{name}" must refer to var.{name} in order to test incoming values.'
            yield block.text.error(span, "Invalid variable validation condition", detail)


def is_effective_condition(block: Block) -> bool:
    """Whether Terraform treats the block as a condition: it refers to something, or `condition` is missing."""
    condition = block.body.arguments.get("condition")
    return condition is None or bool(traversals_and_calls(condition.expression)[0])
