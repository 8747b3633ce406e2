"""Values as far as they are known without running Terraform: their type, a constant, whether they are sensitive.

A type is a word (`string`, `number`, `bool`, `dynamic`) or a tuple: `("list", element)`, also `set` and `map`;
`("tuple", (types…))`; `("object", ((name, type, required), …))`. `dynamic` converts to anything. First come types,
conversions between them and the signatures of built-in functions, then the `Evaluator`.

As in `terraform validate`, variables are unknown values of their type, and resources and modules are unknown. An
expression that Terraform would refuse is an error. Where it would only be refused for some values, or is beyond this
model, it is a doubt: nothing is claimed.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from tree_sitter import Node

from touchstone.validation.hcl.expressions import Call, call_of, first_part, keyword, literal_collection, read_call
from touchstone.validation.hcl.parsing import SourceText, children, children_of_type, descendants, did_you_mean, source
from touchstone.validation.protocol import Diagnostic

Type = str | tuple[Any, ...]

DYNAMIC = "dynamic"
PRIMITIVE = ("string", "number", "bool")
COLLECTIONS = ("list", "set", "map")
SEQUENCES, MAPPINGS = ("list", "set", "tuple"), ("map", "object")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eEpP][+-]?\d+)?")
_MAYBE_NUMBER = re.compile(r"inf|nan", re.IGNORECASE)
_CONSTRUCTORS = {**dict.fromkeys(COLLECTIONS, "element type"), "object": "object type", "tuple": "tuple type"}


@dataclass(frozen=True, slots=True)
class Value:
    """A value as far as it is known without running Terraform.

    `known` is the constant of a primitive type, else None; `parts` are the elements of a literal list or object.
    `sensitive` is None if unknown.
    """

    type: Type = DYNAMIC
    known: str | float | bool | None = None
    parts: tuple["Value", ...] | Mapping[str, "Value"] | None = None
    null: bool = False
    sensitive: bool | None = False

    @property
    def kind(self) -> str:
        """The outermost word of the type."""
        return outer(self.type)

    @property
    def constant(self) -> bool:
        """Whether Terraform knows the whole value when it validates."""
        if self.parts is None:
            return self.null or self.known is not None
        parts = self.parts.values() if isinstance(self.parts, Mapping) else self.parts
        return all(part.constant for part in parts)


def outer(kind: Type) -> str:
    """The outermost word of a type."""
    return kind if isinstance(kind, str) else kind[0]


def attributes_of(kind: Type) -> tuple[tuple[str, Type, bool], ...]:
    """The attributes of an object type: name, type and whether it is required."""
    return kind[1] if isinstance(kind, tuple) and kind[0] == "object" else ()


def type_name(kind: Type) -> str:
    """A type as Terraform names it in messages.

    >>> type_name(("map", ("list", "string")))
    'map of list of string'
    """
    if outer(kind) in COLLECTIONS:
        return f"{kind[0]} of {'any single type' if kind[1] == DYNAMIC else type_name(kind[1])}"
    return outer(kind)


def type_of_schema(raw: object) -> Type:
    """A type as provider schemas have it in JSON."""
    if raw in PRIMITIVE:
        return str(raw)
    if not isinstance(raw, list) or len(raw) < 2:
        return DYNAMIC
    kind, inner = raw[0], raw[1]
    if kind in COLLECTIONS:
        return (kind, type_of_schema(inner))
    if kind == "tuple" and isinstance(inner, list):
        return ("tuple", tuple(type_of_schema(one) for one in inner))
    if kind == "object" and isinstance(inner, dict):
        optional = raw[2] if len(raw) > 2 and isinstance(raw[2], list) else []
        return ("object", tuple((name, type_of_schema(one), name not in optional) for name, one in inner.items()))
    return DYNAMIC


Refuse = Callable[..., object]
"""Takes an error in a type: its first node, its last node, the message and its words."""


def type_of_constraint(expression: Node, refuse: Refuse = lambda *_: None) -> Type:
    """The type that a variable's `type` states; dynamic where it is not understood."""
    word, call = keyword(expression), call_of(expression)
    if call is not None:
        return _constructed(call, refuse)
    if word is None:
        refuse(expression, expression, "no type")
    elif word not in (*PRIMITIVE, "any"):
        unknown = "optional type" if word == "optional" else "no type word"
        refuse(expression, expression, _CONSTRUCTORS.get(word, unknown), word)
    if word in ("list", "map"):  # without an argument, these mean collections of any type
        return (word, DYNAMIC)
    return word if word in PRIMITIVE else DYNAMIC


def _constructed(call: Call, refuse: Refuse) -> Type:
    """The type that a call such as `list(string)` states."""
    name, arguments, opening = call.name, call.arguments, call.node.children[1]
    if name in (*PRIMITIVE, "any"):
        refuse(opening, call.closing, "primitive type", name)
    elif name == "optional":
        refuse(call.name_node, call.name_node, "optional type")
    elif name not in _CONSTRUCTORS:
        refuse(call.node, call.node, "no constructor", name)
    elif len(arguments) != 1:
        first, last = (arguments[1], arguments[-1]) if arguments else (opening, call.closing)
        refuse(first, last, _CONSTRUCTORS[name], name)
    elif name in COLLECTIONS:
        return (name, type_of_constraint(arguments[0], refuse))
    elif (content := literal_collection(arguments[0])) is not None and content.type == name:
        if name == "tuple":
            return (name, tuple(type_of_constraint(one, refuse) for one in children_of_type(content, "expression")))
        attributes = {}
        for one in children_of_type(content, "object_elem"):
            attribute = _attribute(one, refuse)
            if attribute[0] in attributes:
                refuse(one, one, "keys of type")
            attributes[attribute[0]] = attribute
        return (name, tuple(attributes.values()))
    return DYNAMIC


def _attribute(element: Node, refuse: Refuse) -> tuple[str, Type, bool]:
    """An attribute of an object type, which may be wrapped in `optional(type, default)`."""
    key, value = children_of_type(element, "expression")
    name, call = source(key).strip('"'), call_of(value)
    if call is None or call.name != "optional":
        return name, type_of_constraint(value, refuse), True
    if not call.arguments:
        refuse(call.node.children[1], call.closing, "optional argument")
        return name, DYNAMIC, False
    if call.arguments[2:]:
        refuse(call.node.children[1], call.closing, "optional arguments")
    kind = type_of_constraint(call.arguments[0], refuse)
    for default in call.arguments[1:2]:
        if problem := conversion_problem(literal_value(default), kind):
            refuse(default, default, "Invalid default value for optional attribute", problem)
    return name, kind, False


def conversion_problem(value: Value, wanted: Type) -> str:
    """Why Terraform cannot convert the value to the type, in its words; empty if it can or may.

    >>> conversion_problem(Value("string", "5"), "number"), conversion_problem(Value("string", "five"), "number")
    ('', 'a number is required')
    >>> conversion_problem(Value(("tuple", ("string",)), parts=(Value("string", "a"),)), ("list", "number"))
    'element 0: a number is required'
    """
    want, kind = outer(wanted), value.kind
    if value.null or DYNAMIC in (want, kind):
        return ""
    if want in PRIMITIVE:
        return _primitive_problem(value, want)
    if want in ("list", "set") and kind in SEQUENCES:
        return _first_problem(_elements(value), wanted[1], "element {}: {}")
    if want == "tuple" and kind == "tuple":
        if len(wanted[1]) != len(value.type[1]):
            return "tuple required"
        found = (conversion_problem(one, kind) for (_, one), kind in zip(_elements(value), wanted[1], strict=True))
        return next(filter(None, found), "")
    if want == "map" and kind in MAPPINGS:
        return _first_problem(_elements(value), wanted[1], 'element "{}": {}')
    if want == "object" and kind == "object":
        return _object_problem(dict(_elements(value)), wanted)
    may = (want == "object" and kind == "map") or (want == "tuple" and kind in ("list", "set"))
    return "" if may else f"{type_name(wanted)} required"


def _primitive_problem(value: Value, want: str) -> str:
    text = value.known
    if want in ("string", value.kind) and value.kind in PRIMITIVE:
        return ""
    if value.kind != "string":
        return f"{want} required"
    if not isinstance(text, str):
        return ""
    if want == "number":
        return "" if _NUMBER.fullmatch(text) or _MAYBE_NUMBER.search(text) else "a number is required"
    lower = text.lower()
    hint = f'; to convert from string, use lowercase "{lower}"' if lower in ("true", "false") else ""
    return "" if text in ("true", "false", "1", "0") else f"a bool is required{hint}"


def _object_problem(given: Mapping[str, Value], wanted: Type) -> str:
    for name, kind, required in attributes_of(wanted):
        if name in given:
            if problem := conversion_problem(given[name], kind):
                return f'attribute "{name}": {problem}'
        elif required:
            return f'attribute "{name}" is required'
    return ""


def _elements(value: Value) -> Iterator[tuple[str, Value]]:
    """The elements of a collection by index or key; of an unknown one, one that stands for all."""
    kind = value.kind
    if isinstance(value.parts, Mapping):
        yield from value.parts.items()
    elif value.parts is not None:
        yield from ((str(index), part) for index, part in enumerate(value.parts))
    elif kind == "tuple":
        yield from ((str(index), Value(one)) for index, one in enumerate(value.type[1]))
    elif kind == "object":
        yield from ((name, Value(one)) for name, one, _ in attributes_of(value.type))
    else:
        yield "0" if kind != "map" else "*", Value(value.type[1])


def _first_problem(elements: Iterator[tuple[str, Value]], wanted: Type, words: str) -> str:
    found = ((name, conversion_problem(one, wanted)) for name, one in elements)
    return next((words.format(name, problem) for name, problem in found if problem), "")


# From `terraform metadata functions -json` of Terraform 1.11.4: parameters with types, and the result's type. An
# ellipsis takes any number of further arguments. s, n, b and the star are string, number, bool and any type; l, t and m
# before one of them make a list, a set or a map of it. A function that takes any type and then refuses some has the
# kinds that it takes: `seq` (list, set, tuple), `lot` (list, tuple), `map` (map, object), `len` (what has a length).
# `!` marks functions of constants whose success depends on the values; `~` those whose result need not have the marks
# of single elements.
_SIGNATURES = """
abs(num:n)=n abspath(path:s)=s alltrue(list:lb)=b anytrue(list:lb)=b base64decode!(str:s)=s base64encode(str:s)=s
base64gzip!(str:s)=s base64sha256(str:s)=s base64sha512(str:s)=s basename(path:s)=s bcrypt(str:s ...cost:n)=s
can~(expression:*)=b ceil(num:n)=n chomp(str:s)=s chunklist!(list:l* size:n)=* cidrhost!(prefix:s hostnum:n)=s
cidrnetmask!(prefix:s)=s cidrsubnet!(prefix:s newbits:n netnum:n)=s cidrsubnets!(prefix:s ...newbits:n)=ls
coalesce(...vals:*)=* coalescelist(...vals:lot)=* compact(list:ls)=ls concat~(...seqs:lot)=*
contains~(list:seq value:*)=b csvdecode!(str:s)=* dirname(path:s)=s distinct(list:l*)=* element!~(list:lot index:n)=*
endswith(str:s suffix:s)=b ephemeralasnull(value:*)=* file!(path:s)=s filebase64!(path:s)=s filebase64sha256!(path:s)=s
filebase64sha512!(path:s)=s fileexists(path:s)=b filemd5!(path:s)=s fileset!(path:s pattern:s)=ts filesha1!(path:s)=s
filesha256!(path:s)=s filesha512!(path:s)=s flatten(list:seq)=* floor(num:n)=n format!(format:s ...args:*)=s
formatdate!(format:s time:s)=s formatlist!(format:s ...args:*)=ls indent(spaces:n str:s)=s index!(list:lot value:*)=n
issensitive~(value:*)=b join!(separator:s ...lists:ls)=s jsondecode!(str:s)=* jsonencode(val:*)=s keys~(inputMap:map)=*
length~(value:len)=n log!(num:n base:n)=n lookup~(inputMap:map key:s ...default:*)=* lower(str:s)=s
matchkeys(values:l* keys:l* searchset:l*)=* max(...numbers:n)=n md5(str:s)=s merge~(...maps:map)=* min(...numbers:n)=n
nonsensitive(value:*)=* one!(list:seq)=* parseint!(number:* base:n)=n pathexpand(path:s)=s plantimestamp()=s
pow(num:n power:n)=n range!(...params:n)=ln regex!(pattern:s string:s)=* regexall!(pattern:s string:s)=*
replace(str:s substr:s replace:s)=s reverse(list:seq)=* rsadecrypt!(ciphertext:s privatekey:s)=s sensitive(value:*)=*
setintersection(first_set:t* ...other_sets:t*)=t* setproduct~(...sets:seq)=* setsubtract(a:t* b:t*)=t*
setunion(first_set:t* ...other_sets:t*)=t* sha1(str:s)=s sha256(str:s)=s sha512(str:s)=s signum(num:n)=n
slice!(list:lot start_index:n end_index:n)=* sort(list:ls)=ls split(separator:s str:s)=ls startswith(str:s prefix:s)=b
strcontains(str:s substr:s)=b strrev(str:s)=s substr(str:s offset:n length:n)=s sum(list:seq)=n
templatefile!(path:s vars:map)=* templatestring!(template:s vars:map)=s textdecodebase64!(source:s encoding:s)=s
textencodebase64(string:s encoding:s)=s timeadd!(timestamp:s duration:s)=s timecmp!(timestamp_a:s timestamp_b:s)=n
timestamp()=s title(str:s)=s tobool(v:b)=b tolist(v:seq)=* tomap(v:map)=* tonumber(v:n)=n toset(v:seq)=* tostring(v:s)=s
transpose(values:m*)=* trim(str:s cutset:s)=s trimprefix(str:s prefix:s)=s trimspace(str:s)=s
trimsuffix(str:s suffix:s)=s try(...expressions:*)=* upper(str:s)=s urlencode(str:s)=s uuid()=s
uuidv5(namespace:s name:s)=s values~(mapping:map)=* yamldecode!(src:s)=* yamlencode(value:*)=s
zipmap!(keys:ls values:lot)=*
"""
_COLLECTED = {"l": "list", "t": "set", "m": "map"}
_WORDS = {"s": "string", "n": "number", "b": "bool", "*": DYNAMIC}
_KINDS = {"seq": SEQUENCES, "lot": ("list", "tuple"), "map": MAPPINGS, "len": ("string", *SEQUENCES, *MAPPINGS)}
# Functions whose result has the same type for arguments of which nothing is known.
_OF_ANYTHING = ("can", "issensitive", "jsonencode", "length", "yamlencode")
_KIND_NAMES = {"seq": "a list, set or tuple", "lot": "a list or tuple", "map": "a map or object", "len": "a collection"}


# How many arguments functions take that Terraform declares with any number of them, and its complaint.
_ONE_OR_MORE, _ANY_NUMBER = "at least one argument is required", 10_000
_COUNTS = {
    **dict.fromkeys(("coalescelist", "concat", "try"), (1, _ANY_NUMBER, _ONE_OR_MORE)),
    **dict.fromkeys(("max", "min"), (1, _ANY_NUMBER, "must pass at least one number")),
    "coalesce": (1, _ANY_NUMBER, "all arguments must have the same type"),
    "lookup": (2, 3, "lookup() takes two or three arguments, got {}"),
    "range": (1, 3, "must have one, two, or three arguments"),
    "setproduct": (2, _ANY_NUMBER, "at least two arguments are required"),
}


class Signature(NamedTuple):
    """A function's parameters by name, of which the last may be `variadic`, and the type of its result.

    A parameter is a type, or a word for the kinds of values that it takes of any type.
    """

    parameters: list[tuple[str, Type]]
    variadic: bool
    flags: str
    result: Type

    @property
    def needed(self) -> int:
        """The number of arguments that must be given."""
        return len(self.parameters) - self.variadic

    def of(self, count: int) -> list[tuple[str, Type]]:
        """The parameters that a call with so many arguments fills."""
        return [*self.parameters, *self.parameters[-1:] * (count * self.variadic)]


def takes(wanted: Type, value: Value) -> str:
    """Why a parameter does not take a value; empty if it does or may."""
    if value.null:
        return "" if wanted == DYNAMIC or wanted in _KINDS else "argument must not be null"
    if wanted not in _KINDS:
        return conversion_problem(value, wanted)
    fits = value.kind in (DYNAMIC, *_KINDS[wanted])
    return "" if fits else f"must be {_KIND_NAMES[wanted]}, not {value.kind}"


def _type(word: str) -> Type:
    return (_COLLECTED[word[0]], _WORDS[word[1]]) if len(word) == 2 else _WORDS.get(word, word)


SIGNATURES = {
    name: Signature(
        [(word, _type(kind)) for word, kind in re.findall(r"(\w+):(\S+)", given)], "..." in given, flags, _type(result)
    )
    for name, flags, given, result in re.findall(r"(\w+)([!~]*)\(([^)]*)\)=(\S+)", _SIGNATURES)
}


def is_of_provider(call: Call) -> bool:
    """Whether a provider has the function, such as `provider::aws::arn_parse`, so that nothing is known of it."""
    return call.words[0] == "provider" and len(call.words) > 1


def call_errors(text: SourceText, call: Call) -> Iterator[Diagnostic]:
    """The errors of a call, apart from its argument values."""
    *namespaces, name = call.words
    if is_of_provider(call) or name in ("list", "map"):  # removed functions, whose message names the replacement
        return
    signature = SIGNATURES.get(name) if namespaces in ([], ["core"]) else None
    if signature is None:
        place = f' in namespace "{"::".join(namespaces)}::".' if namespaces else f".{did_you_mean(name, SIGNATURES)}"
        yield text.error(call.name_node, "Call to unknown function", name, place)
        return
    if call.expanded:
        return
    given, count = len(call.arguments), signature.needed
    if given < count:
        bound, missing = "at least " if signature.variadic else "", signature.parameters[given][0]
        yield text.error(call.closing, "Not enough function arguments", call.name, bound, count, missing)
    elif given > count and not signature.variadic:
        yield text.error(first_part(text, call.arguments[count]), "Too many function arguments", call.name, count)
    least, most, complaint = _COUNTS.get(name, (0, given, ""))
    if not least <= given <= most:
        yield text.error(first_part(text, call.node), "Error in function call", call.name, complaint.format(given))


# Whether Terraform surely evaluates an expression, perhaps, or ignores its errors as in `try`.
Certainty = Literal["sure", "perhaps", "forgiven"]

_MAX_DEPTH, _SHOWN = 60, 80
_NUMBERS, _LOGIC, _ORDER = ("+", "-", "*", "/", "%"), ("&&", "||"), ("<", ">", "<=", ">=")
_SIGNS = frozenset({*_NUMBERS, *_LOGIC, *_ORDER, "==", "!=", "!"})


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

    def _if_known(self, value: Value) -> "Evaluator":
        """To refuse what Terraform refuses only of a value that it knows."""
        return self if value.constant or value.parts is not None else self._with("perhaps")

    def _refuse(self, node: Node, message: str, *words: object) -> Value:
        if self.certainty != "forgiven":
            error = self.text.error(first_part(self.text, node), message, *words)
            if self.certainty == "sure":
                self.errors.append(error)
            else:
                self._doubt(node, f"{error.summary}, unless it is never evaluated: {error.detail}")
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
        else:
            evaluate = _EVALUATED.get(nodes[0].type)
            value, used = evaluate(inner, nodes[0]) if evaluate is not None else Value(), 1
        for position, node in enumerate(nodes[used:], used):
            if node.type == "splat":
                return inner._splat(value, node.named_children[0])
            value = inner._step(value, node)
            if value.kind == DYNAMIC and value.sensitive is False:
                for later in nodes[position + 1 :]:
                    if later.type == "index":
                        inner._key(later)
                return value
        return value

    def _splat(self, value: Value, splat: Node) -> Value:
        single = value.kind in (*PRIMITIVE, *MAPPINGS)  # which counts as a list of itself
        inner = value.type if single else value.type[1] if value.kind == "list" else DYNAMIC
        each = Value(inner, sensitive=value.sensitive)
        for step in children(splat):
            if splat.type == "attr_splat" and step.type == "index":  # of the whole result
                return Value(sensitive=each.sensitive)
            each = self._step(each, step)
        return Value(DYNAMIC if single or each.kind == DYNAMIC else ("list", each.type), sensitive=each.sensitive)

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
                self._if_known(value)._refuse(part, "Invalid template interpolation value")
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
            self._refuse(intro, "Iteration over non-iterable value", over.kind)
        inner = self._with("perhaps", names)
        results = []
        for child in loop.named_children:
            if child.type == "expression":
                results.append(inner.value(child))
            elif child.type == "for_cond":
                # Evaluated even if nothing is known of the collection.
                condition = children_of_type(child, "expression")[0]
                self._operand(condition, inner.value(condition), "bool", "Invalid 'for' condition")
        # Of a collection that is not known, Terraform may lose the mark.
        return Value(sensitive=_any_sensitive([over, *results]) and None)

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
        condition = self.value(parts[0])
        self._if_known(condition)._operand(parts[0], condition, "bool", "Incorrect condition type")
        inner = self._with("perhaps")
        yes, no = inner.value(parts[1]), inner._chosen(parts[2:], node)
        sensitive = _any_sensitive([condition, yes, no])
        if yes.null or no.null:
            return Value(no.type if yes.null else yes.type, sensitive=sensitive)
        if yes.type == no.type:
            return Value(yes.type, sensitive=sensitive)
        kinds = [_family(value) for value in (yes, no)]
        if "" not in kinds and kinds[0] != kinds[1]:
            self._refuse(node, "Inconsistent conditional result types")
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
            if value.null and wanted != DYNAMIC:
                inner._refuse(node, "Operation failed")
            values.append(inner._operand(operand[0], value, wanted, "Invalid operand"))
        kind = "number" if word in _NUMBERS else "bool"
        known = None
        if operation.type == "unary_operation" and word == "-" and isinstance(values[0].known, float):
            known = -values[0].known
        return Value(kind, known, sensitive=_any_sensitive(values))

    def _operand(self, node: Node, value: Value, wanted: Type, message: str) -> Value:
        if problem := conversion_problem(value, wanted):
            self._refuse(node, message, problem)
        return value

    def _step(self, value: Value, node: Node) -> Value:
        if node.type == "index":
            return self._indexed(value, node, self._key(node))
        if node.type != "get_attr" or value.kind == DYNAMIC:
            return Value(sensitive=value.sensitive)
        if value.kind == "map":
            return Value(value.type[1], sensitive=value.sensitive)
        if value.kind == "object":
            return self._member(value, node, source(node)[1:].strip(), "no member")
        return self._refuse(node, "of primitive" if value.kind in PRIMITIVE else "of value", value.kind)

    def _key(self, index: Node) -> Value:
        if expressions := children_of_type(index.named_children[0], "expression"):
            return self.value(expressions[0])
        digits = source(index).strip(". ")  # as in `a.0`
        return Value("number", float(digits) if digits.isdigit() else None)

    def _member(self, value: Value, node: Node, name: str, message: str) -> Value:
        if isinstance(value.parts, Mapping) and name in value.parts:
            return value.parts[name]
        types = {one: kind for one, kind, _ in attributes_of(value.type)}
        return Value(types[name], sensitive=value.sensitive) if name in types else self._refuse(node, message, name)

    def _indexed(self, value: Value, node: Node, key: Value) -> Value:
        kind = value.kind
        if kind == "set":
            return self._refuse(node, "index of set")
        if kind in PRIMITIVE:
            return self._refuse(node, "no indices")
        if kind in (*SEQUENCES, *MAPPINGS):
            wanted = "number" if kind in SEQUENCES else "string"
            if problem := conversion_problem(key, wanted):
                return self._refuse(node, "index type", problem)
        if kind == "object" and isinstance(key.known, str):
            return self._member(value, node, key.known, "no index member")
        if kind == "object" and isinstance(key.known, float):
            return self._refuse(node, "number of object")
        if kind == "tuple" and isinstance(key.known, float) and value.parts is not None:
            if not 0 <= key.known < len(value.parts):
                return self._refuse(node, "no element")
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
        for error in call_errors(self.text, call) if self.certainty == "perhaps" else ():
            self._doubt(node, f"{error.summary}, unless it is never evaluated: {error.detail}")
        if signature is None:
            return Value(sensitive=sensitive)
        if call.expanded:
            if len(values) == 1 and values[0].kind in (*PRIMITIVE, *MAPPINGS):
                self._refuse(arguments[-1], "Invalid expanding argument value")
            return Value(sensitive=sensitive)
        self._check_arguments(signature, arguments, values)
        of_map = name == "lookup" and len(values) == 3 and values[0].kind == "map"
        if of_map and conversion_problem(values[2], values[0].type[1]):
            problem = "the default value must have the same type as the map elements"
            self._refuse(arguments[2], "Invalid function argument", "default", problem)
        known = all(value.constant for value in values)
        reads = name.startswith(("file", "templatefile")) and "path." in source(node)
        if "!" in signature.flags and (reads or (known and not _is_simple(name, values))):
            self._doubt(node, f"whether {name}() accepts these values is not checked")
        return Value(_result_type(name, signature, values), sensitive=sensitive)

    def _check_arguments(self, signature: Signature, arguments: Sequence[Node], values: Sequence[Value]) -> None:
        unknown = any(value.kind == DYNAMIC and not value.null for value in values)
        # Too many arguments are an error already.
        for argument, value, (parameter, wanted) in zip(arguments, values, signature.of(len(values)), strict=False):
            if problem := takes(wanted, value):
                # A function's own rules are only applied if the types of all arguments are known.
                inner = self._with("perhaps") if unknown and (wanted in _KINDS or value.null) else self
                inner = inner._if_known(value) if signature is SIGNATURES["flatten"] else inner
                inner._refuse(argument, "Invalid function argument", parameter, problem)


_EVALUATED: Mapping[str, Callable[[Evaluator, Node], Value]] = {
    "expression": Evaluator.value,
    "literal_value": Evaluator._literal_value,
    "template_expr": Evaluator._template_expr,
    "collection_value": Evaluator._collection_value,
    "for_expr": Evaluator._for_expr,
    "conditional": Evaluator._conditional,
    "operation": Evaluator._operation,
    "function_call": Evaluator._function_call,
}


def _any_sensitive(values: Sequence[Value]) -> bool | None:
    marks = [value.sensitive for value in values]
    return True if True in marks else None if None in marks else False


def _sensitivity(name: str, values: Sequence[Value]) -> bool | None:
    if name == "sensitive":
        return True
    if name in ("nonsensitive", "issensitive"):
        return False
    marked = _any_sensitive(values)
    return None if marked and (name not in SIGNATURES or "~" in SIGNATURES[name].flags) else marked


def _family(value: Value) -> str:
    """Kinds of which none converts to one of another family; empty if unknown."""
    for family in (PRIMITIVE, SEQUENCES, MAPPINGS):
        if value.kind in family:
            return family[0]
    return ""


def _is_simple(name: str, values: Sequence[Value]) -> bool:
    """Whether a call with constant arguments is sure to succeed."""
    if name in ("format", "formatlist") and values and isinstance(values[0].known, str):
        verbs = re.findall(r"%(%|[^%])", values[0].known)
        used = [verb for verb in verbs if verb != "%"]
        return all(verb in "svq" for verb in used) and len(used) == len(values) - 1
    return (name == "element" and bool(values and values[0].parts)) or (name == "join" and len(values) > 1)


def _result_type(name: str, signature: Signature, values: Sequence[Value]) -> Type:
    first = values[0] if values else Value()
    if name not in _OF_ANYTHING and any(
        value.kind == DYNAMIC and not value.null and (wanted == DYNAMIC or wanted in _KINDS)
        for value, (_, wanted) in zip(values, signature.of(len(values)), strict=False)
    ):
        return DYNAMIC  # as Terraform, which does not call a function then
    if signature.result != DYNAMIC or not isinstance(first.type, tuple):
        return signature.result
    if name in ("element", "lookup", "one") and first.kind in ("list", "set", "map"):
        return first.type[1] if name != "lookup" or len(values) == 2 else DYNAMIC
    if name == "keys" and first.kind == "object":
        return ("tuple", ("string",) * len(attributes_of(first.type)))
    if name in ("keys", "values") and first.kind == "map":
        return ("list", "string" if name == "keys" else first.type[1])
    if name in ("distinct", "reverse", "slice", "tolist") and first.kind in ("list", "set"):
        return ("list", first.type[1])
    if name == "toset":
        same = first.type[1][0] if first.kind == "tuple" and len(set(first.type[1])) == 1 else DYNAMIC
        return ("set", first.type[1] if first.kind in ("list", "set") else same)
    if name == "tolist":
        return ("list", DYNAMIC)
    if name == "tomap":
        return ("map", first.type[1] if first.kind == "map" else DYNAMIC)
    if name == "merge" and all(value.type == first.type for value in values) and first.kind == "map":
        return first.type
    return DYNAMIC


def literal_value(expression: Node) -> Value:
    """The value of an expression without references; errors in it are found elsewhere."""
    return Evaluator(SourceText("", b""), lambda *_: (Value(), 0), certainty="forgiven").value(expression)
