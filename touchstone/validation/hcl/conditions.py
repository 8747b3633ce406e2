"""Blocks that check something: validations of variables, pre- and postconditions, assertions."""

from collections.abc import Iterator

from touchstone.validation.hcl.expressions import mentions
from touchstone.validation.hcl.shapes import Shape, shape_errors
from touchstone.validation.hcl.tree import Block
from touchstone.validation.protocol import Diagnostic

_SHAPE = Shape(("condition", "error_message"), ("condition", "error_message"))


def condition_errors(block: Block, owner: Block | None = None) -> Iterator[Diagnostic]:
    """What is wrong with one such block; `owner` is the root block around it where that is a variable or so."""
    yield from shape_errors(block, _SHAPE)
    condition = block.body.arguments.get("condition")
    if condition is None:
        return
    span = block.text.span(condition.expression)
    found, _ = mentions(condition.expression)
    if not found:
        detail = (
            "The condition expression must refer to at least one object from elsewhere in the configuration, or else "
            "its result would not be checking anything."
        )
        yield block.text.error(span, f"Invalid {block.kind} expression", detail)
    if owner is not None and owner.kind == "variable":
        name = owner.labels[0]
        if not any(mention.root == "var" and [step.name for step in mention.steps[:1]] == [name] for mention in found):
            detail = f'The condition for variable "{name}" must refer to var.{name} in order to test incoming values.'
            yield block.text.error(span, "Invalid variable validation condition", detail)


def states_something(block: Block) -> bool:
    """Whether Terraform takes it for a condition at all."""
    condition = block.body.arguments.get("condition")
    return condition is None or bool(mentions(condition.expression)[0])
