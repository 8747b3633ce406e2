"""What can be told of an expression's value without running Terraform: its type, a constant, whether it is sensitive.

As in `terraform validate`, variables are unknown values of their type, and resources and modules are unknown. An
expression that Terraform would refuse is an error. Where it would only be refused for some values, or is beyond what is
modelled here, it is a doubt: nothing is claimed.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from tree_sitter import Node

from touchstone.validation.hcl.expressions import first_part, keyword, read_call
from touchstone.validation.hcl.parsing import SourceText, children, children_of_type, descendants, source
from touchstone.validation.hcl.types import (
    DYNAMIC,
    MAPPINGS,
    PRIMITIVE,
    SEQUENCES,
    SIGNATURES,
    Signature,
    Type,
    Value,
    attributes_of,
    conversion_problem,
    takes,
)
from touchstone.validation.protocol import Diagnostic

# Whether Terraform surely evaluates an expression, perhaps, or ignores its errors as in `try`.
Certainty = Literal["sure", "perhaps", "forgiven"]

_MAX_DEPTH, _SHOWN = 60, 80
_NUMBERS, _LOGIC, _ORDER = ("+", "-", "*", "/", "%"), ("&&", "||"), ("<", ">", "<=", ">=")
_SIGNS = frozenset({*_NUMBERS, *_LOGIC, *_ORDER, "==", "!=", "!"})
# Functions of constants whose success depends on the values.
_DEPEND_ON_VALUES = frozenset({
    "base64decode", "base64gzip", "chunklist", "cidrhost", "cidrnetmask", "cidrsubnet", "cidrsubnets", "csvdecode",
    "element", "file", "filebase64", "filebase64sha256", "filebase64sha512", "filemd5", "fileset", "filesha1",
    "filesha256", "filesha512", "format", "formatdate", "formatlist", "index", "jsondecode", "log", "one", "parseint",
    "range", "regex", "regexall", "rsadecrypt", "slice", "templatefile", "templatestring", "textdecodebase64",
    "timeadd", "timecmp", "yamldecode", "zipmap"
})  # fmt: skip
_READ_FILES = frozenset(name for name in _DEPEND_ON_VALUES if name.startswith(("file", "templatefile")))
# Of these, marks of single elements need not reach the result.
_LOSE_MARKS = frozenset({
    "can", "issensitive", "keys", "length", "contains", "lookup", "element", "values", "merge", "setproduct", "concat"
})  # fmt: skip


class Doubt(NamedTuple):
    """Why something is not judged, and the text in question."""

    reason: str
    text: str


@dataclass
class Evaluator:
    """Evaluates the expressions of one place, and notes errors and doubts.

    `named` gives the value of a root name with the steps after it, and the number of steps that it used.
    """

    text: SourceText
    named: Callable[[str, Sequence[str]], tuple[Value, int]]
    bound: frozenset[str] = frozenset()
    certainty: Certainty = "sure"
    depth: int = 0
    errors: list[Diagnostic] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)

    def value(self, expression: Node) -> Value:
        """The value of an expression."""
        return self._terms(children(expression))

    def _with(self, certainty: Certainty, bound: frozenset[str] = frozenset()) -> "Evaluator":
        if self.certainty == "forgiven" or certainty == "sure":
            certainty = self.certainty
        return replace(self, certainty=certainty, bound=self.bound | bound)

    def _refuse(self, node: Node, summary: str, detail: str) -> Value:
        if self.certainty == "sure":
            self.errors.append(self.text.error(first_part(self.text, node), summary, detail))
        elif self.certainty == "perhaps":
            self._doubt(node, f"{summary}, unless it is never evaluated: {detail}")
        return Value()

    def _doubt(self, node: Node, reason: str) -> None:
        if self.certainty != "forgiven":
            shown = " ".join(source(node).split())[:_SHOWN]
            self.doubts.append(Doubt(f"{reason} ({shown})", source(node)))

    def _terms(self, nodes: list[Node]) -> Value:
        """A term with what follows it: attributes, indices and splats."""
        if not nodes or self.depth >= _MAX_DEPTH:
            return Value()
        inner = replace(self, depth=self.depth + 1)
        if nodes[0].type == "variable_expr":
            value, used = inner._reference(nodes)
        else:  # by the type of the node: `_literal_value`, `_function_call` and so on
            evaluate = getattr(inner, f"_{nodes[0].type}", None)
            value, used = evaluate(nodes[0]) if evaluate is not None else Value(), 1
        for position, node in enumerate(nodes[used:], used):
            value = inner._step(value, node)
            if node.type == "splat" or (value.kind == DYNAMIC and value.sensitive is False):
                for later in nodes[position + 1 :]:
                    if later.type == "index":
                        inner._key(later)
                return value if value.kind == DYNAMIC else Value(sensitive=value.sensitive)
        return value

    def _reference(self, nodes: list[Node]) -> tuple[Value, int]:
        root = source(nodes[0])
        if root in self.bound:
            return Value(), 1
        names = []
        for node in nodes[1:]:
            if node.type != "get_attr":
                break
            names.append(source(node)[1:].strip())
        value, used = self.named(root, names)
        return value, 1 + used

    _expression = value

    def _literal_value(self, node: Node) -> Value:
        inner = children(node)[0]
        written = source(inner)
        if inner.type == "string_lit":
            plain = "\\" not in written and "$${" not in written and "%%{" not in written
            return Value("string", written[1:-1] if plain else None)
        if inner.type == "numeric_lit":
            return Value("number", float(written) if re.fullmatch(r"[0-9.]+", written) else None)
        if inner.type == "bool_lit":
            return Value("bool", written == "true")
        return Value(null=True) if inner.type == "null_lit" else Value()

    def _template_expr(self, node: Node) -> Value:
        template = node.named_children[0]
        parts = children_of_type(template, "template_interpolation")
        values = [(part, self._first_expression(part)) for part in parts]
        if len(parts) == 1 and source(template) == f'"{source(parts[0])}"':
            return values[0][1]
        for part, value in values:
            if value.kind not in (*PRIMITIVE, DYNAMIC):
                detail = "Cannot include the given value in a string template: string required."
                self._refuse(part, "Invalid template interpolation value", detail)
        for directive in children_of_type(template, "template_directive"):
            self._walk(directive)
        return Value("string", sensitive=_any_sensitive([value for _, value in values]))

    def _first_expression(self, node: Node) -> Value:
        return next(map(self.value, children_of_type(node, "expression")), Value())

    def _walk(self, node: Node) -> None:
        """Look into what is not modelled, where errors are only possible."""
        names = frozenset(source(child) for child in descendants(node) if child.type == "identifier")
        inner = self._with("perhaps", names)
        for child in descendants(node):
            if child.type == "expression" and inner.depth < _MAX_DEPTH:
                inner.value(child)

    def _collection_value(self, node: Node) -> Value:
        inner = children(node)[0]
        if inner.type == "tuple":
            parts = tuple(map(self.value, children_of_type(inner, "expression")))
            return Value(("tuple", tuple(part.type for part in parts)), parts=parts, sensitive=_any_sensitive(parts))
        return self._object(inner)

    def _object(self, node: Node) -> Value:
        given: dict[str, Value] = {}
        certain = True
        for element in children_of_type(node, "object_elem"):
            name, content = children_of_type(element, "expression")
            key, value = keyword(name), self.value(content)
            if key is None:
                known = self.value(name).known
                certain = certain and known is not None
                key = str(known)
            given[key] = value
        sensitive = _any_sensitive(list(given.values()))
        if not certain:
            return Value(sensitive=sensitive)
        kind = ("object", tuple((name, value.type, True) for name, value in given.items()))
        return Value(kind, parts=given, sensitive=sensitive)

    def _for_expr(self, node: Node) -> Value:
        loop = node.named_children[0]
        intro = children_of_type(loop, "for_intro")[0]
        names = frozenset(map(source, children_of_type(intro, "identifier")))
        over = self._first_expression(intro)
        if over.kind in PRIMITIVE:
            detail = f"A value of type {over.kind} cannot be used as the collection in a 'for' expression."
            self._refuse(intro, "Iteration over non-iterable value", detail)
        inner = self._with("perhaps", names)
        results = []
        for child in loop.named_children:
            if child.type == "expression":
                results.append(inner.value(child))
            elif child.type == "for_cond":
                inner._first_expression(child)
        return Value(sensitive=_any_sensitive([over, *results]))

    def _conditional(self, node: Node) -> Value:
        """`a ? b : c ? d : e`, which tree-sitter reads as `(a ? b : c) ? d : e`."""
        parts = children_of_type(node, "expression")
        while parts and [child.type for child in parts[0].children if child.type != "comment"] == ["conditional"]:
            parts = [*children_of_type(children(parts[0])[0], "expression"), *parts[1:]]
        return self._chosen(parts, node)

    def _chosen(self, parts: Sequence[Node], node: Node) -> Value:
        """One of several values: condition, value, condition, value, …, value."""
        if len(parts) < 3 or len(parts) > _MAX_DEPTH:
            return self.value(parts[-1]) if parts else Value()
        condition = self._operand(parts[0], self.value(parts[0]), "bool", "Incorrect condition type")
        inner = self._with("perhaps")
        yes, no = inner.value(parts[1]), inner._chosen(parts[2:], node)
        sensitive = _any_sensitive([condition, yes, no])
        if yes.null or no.null:
            return Value(no.type if yes.null else yes.type, sensitive=sensitive)
        if yes.type == no.type:
            return Value(yes.type, sensitive=sensitive)
        kinds = [_family(value) for value in (yes, no)]
        if "" not in kinds and kinds[0] != kinds[1]:
            detail = "The true and false result expressions must have consistent types."
            self._refuse(node, "Inconsistent conditional result types", detail)
        elif {yes.kind, no.kind} == {"number", "bool"}:
            self._doubt(node, "a conditional whose results are a number and a bool")
        mixed = "string" if {yes.kind, no.kind} <= {*PRIMITIVE} else DYNAMIC
        return Value(mixed, sensitive=sensitive)

    def _operation(self, node: Node) -> Value:
        operation = node.named_children[0]
        sign = next((child for child in operation.children if child.type in _SIGNS), None)
        if sign is None:
            return Value()
        operands = children(operation)
        before = [child for child in operands if child.end_byte <= sign.start_byte]
        after = [child for child in operands if child.start_byte >= sign.end_byte]
        word = source(sign)
        wanted = "bool" if word in ("!", *_LOGIC) else "number" if word in (*_NUMBERS, *_ORDER) else DYNAMIC
        values = []
        for number, operand in enumerate(part for part in (before, after) if part):
            inner = self._with("perhaps") if word in _LOGIC and number else self
            value = inner._terms(operand)
            values.append(inner._operand(operand[0], value, wanted, "Invalid operand"))
        kind = "number" if word in _NUMBERS else "bool"
        known = None
        if operation.type == "unary_operation" and word == "-" and isinstance(values[0].known, float):
            known = -values[0].known
        return Value(kind, known, sensitive=_any_sensitive(values))

    def _operand(self, node: Node, value: Value, wanted: Type, summary: str) -> Value:
        if problem := conversion_problem(value, wanted):
            self._refuse(node, summary, f"Unsuitable value: {problem}.")
        return value

    def _step(self, value: Value, node: Node) -> Value:
        if node.type == "get_attr":
            return self._attribute(value, node, source(node)[1:].strip())
        if node.type == "index":
            return self._indexed(value, node, self._key(node))
        return Value(sensitive=value.sensitive)

    def _key(self, index: Node) -> Value:
        if expressions := children_of_type(index.named_children[0], "expression"):
            return self.value(expressions[0])
        digits = source(index).strip(". ")  # as in `a.0`
        return Value("number", float(digits) if digits.isdigit() else None)

    def _attribute(self, value: Value, node: Node, name: str) -> Value:
        kind = value.kind
        if kind == "object":
            return self._member(value, node, name, "Unsupported attribute")
        if kind == "map":
            return Value(value.type[1], sensitive=value.sensitive)
        if kind != DYNAMIC:
            return self._refuse(node, "Unsupported attribute", "This value does not have any attributes.")
        return Value(sensitive=value.sensitive)

    def _member(self, value: Value, node: Node, name: str, summary: str) -> Value:
        if isinstance(value.parts, Mapping) and name in value.parts:
            return value.parts[name]
        types = {one: kind for one, kind, _ in attributes_of(value.type)}
        if name in types:
            return Value(types[name], sensitive=value.sensitive)
        return self._refuse(node, summary, f'This object does not have an attribute named "{name}".')

    def _indexed(self, value: Value, node: Node, key: Value) -> Value:
        kind = value.kind
        if kind == "set":
            detail = "Elements of a set are identified only by their value and don't have any separate index or key."
            return self._refuse(node, "Invalid index", detail)
        if kind in PRIMITIVE:
            return self._refuse(node, "Invalid index", "This value does not have any indices.")
        if kind in (*SEQUENCES, *MAPPINGS):
            wanted = "number" if kind in SEQUENCES else "string"
            if problem := conversion_problem(key, wanted):
                return self._refuse(node, "Invalid index", f"The given key does not identify an element: {problem}.")
        if kind == "object" and isinstance(key.known, str):
            return self._member(value, node, key.known, "Invalid index")
        if kind == "tuple" and isinstance(key.known, float) and value.parts is not None:
            if not 0 <= key.known < len(value.parts):
                return self._refuse(node, "Invalid index", "The given key does not identify an element.")
            assert not isinstance(value.parts, Mapping)
            return value.parts[int(key.known)]
        return Value(value.type[1] if kind in ("list", "map") else DYNAMIC, sensitive=value.sensitive)

    def _function_call(self, node: Node) -> Value:
        call = read_call(node)
        name, arguments = "::".join(call.words).removeprefix("core::"), call.arguments
        inner = self._with("forgiven") if name in ("try", "can") else self
        values = [inner.value(argument) for argument in arguments]
        sensitive = _sensitivity(name, values)
        signature = SIGNATURES.get(name)
        if signature is None:
            return Value(sensitive=sensitive)
        if call.expanded:
            if len(values) == 1 and values[0].kind in (*PRIMITIVE, *MAPPINGS):
                detail = "The expansion symbol ... must be followed by a list or tuple."
                self._refuse(arguments[-1], "Invalid expanding argument value", detail)
            return Value(signature.result, sensitive=sensitive)
        self._check_arguments(signature, arguments, values)
        known = all(value.constant for value in values)
        reads = name in _READ_FILES and "path." in source(node)
        if reads or (name in _DEPEND_ON_VALUES and known and not _is_simple(name, values)):
            self._doubt(node, f"whether {name}() accepts these values is not checked")
        return Value(_result_type(name, signature, values), sensitive=sensitive)

    def _check_arguments(self, signature: Signature, arguments: Sequence[Node], values: Sequence[Value]) -> None:
        unknown = any(value.kind == DYNAMIC and not value.null for value in values)
        for index, (argument, value) in enumerate(zip(arguments, values, strict=True)):
            parameter = signature.parameter(index)
            if parameter is None:
                return  # too many arguments, which is an error already
            if problem := takes(parameter, value):
                detail = f'Invalid value for "{parameter.name}" parameter: {problem}.'
                # A function's own rules are only applied if the types of all arguments are known.
                inner = self._with("perhaps") if unknown and parameter.kinds else self
                inner._refuse(argument, "Invalid function argument", detail)


def _any_sensitive(values: Sequence[Value]) -> bool | None:
    marks = [value.sensitive for value in values]
    return True if True in marks else None if None in marks else False


def _sensitivity(name: str, values: Sequence[Value]) -> bool | None:
    if name == "sensitive":
        return True
    if name in ("nonsensitive", "issensitive"):
        return False
    marked = _any_sensitive(values)
    return None if marked and (name in _LOSE_MARKS or name not in SIGNATURES) else marked


def _family(value: Value) -> str:
    """Kinds of which none converts to one of another family; empty if unknown."""
    for family in (PRIMITIVE, SEQUENCES, MAPPINGS):
        if value.kind in family:
            return family[0]
    return ""


def _is_simple(name: str, values: Sequence[Value]) -> bool:
    """Whether a call with constant arguments is sure to succeed."""
    if name == "format" and values and isinstance(values[0].known, str):
        verbs = re.findall(r"%(%|[^%])", values[0].known)
        used = [verb for verb in verbs if verb != "%"]
        return all(verb in "svq" for verb in used) and len(used) == len(values) - 1
    if name == "element":
        return bool(values and values[0].parts)
    return name == "formatlist"


def _result_type(name: str, signature: Signature, values: Sequence[Value]) -> Type:
    first = values[0] if values else Value()
    if signature.result != DYNAMIC or not isinstance(first.type, tuple):
        return signature.result
    if name in ("element", "lookup", "one") and first.kind in ("list", "set", "map"):
        return first.type[1] if name != "lookup" or len(values) == 2 else DYNAMIC
    if name in ("keys", "values") and first.kind == "map":
        return ("list", "string" if name == "keys" else first.type[1])
    if name in ("distinct", "reverse", "slice", "tolist") and first.kind in ("list", "set"):
        return ("list", first.type[1])
    if name == "toset":
        return ("set", first.type[1] if first.kind in ("list", "set") else DYNAMIC)
    if name == "tolist":
        return ("list", DYNAMIC)
    if name == "tomap":
        return ("map", first.type[1] if first.kind == "map" else DYNAMIC)
    if name == "merge" and all(value.type == first.type for value in values) and first.kind == "map":
        return first.type
    return DYNAMIC


def literal_value(text: SourceText, expression: Node) -> Value:
    """The value of an expression without references; errors in it are found elsewhere."""
    return Evaluator(text, lambda *_: (Value(), 0), certainty="forgiven").value(expression)
