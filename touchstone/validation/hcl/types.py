"""Terraform's types, the conversions between them, a variable's `type`, and the signatures of built-in functions.

A type is a word (`string`, `number`, `bool`, `dynamic`) or a tuple: `("list", element)`, also `set` and `map`;
`("tuple", (types…))`; `("object", ((name, type, required), …))`. `dynamic` converts to anything.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tree_sitter import Node

from touchstone.validation.hcl.expressions import Call, call_of, first_part, keyword, literal_collection
from touchstone.validation.hcl.parsing import SourceText, children_of_type, did_you_mean, source
from touchstone.validation.protocol import Diagnostic

Type = str | tuple[Any, ...]

DYNAMIC = "dynamic"
PRIMITIVE = ("string", "number", "bool")
COLLECTIONS = ("list", "set", "map")
SEQUENCES, MAPPINGS = ("list", "set", "tuple"), ("map", "object")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eEpP][+-]?\d+)?")
_MAYBE_NUMBER = re.compile(r"inf|nan", re.IGNORECASE)
_NO_TYPE = (
    "A type specification is either a primitive type keyword (bool, number, string) or a complex type constructor "
    "call, like list(string)."
)
_CONSTRUCTORS = {
    **{word: f"The {word} type constructor requires one argument specifying the element type." for word in COLLECTIONS},
    "object": "The object type constructor requires one argument specifying the attribute types and values as a map.",
    "tuple": "The tuple type constructor requires one argument specifying the element types as a list.",
}
_OPTIONAL = 'Keyword "optional" is valid only as a modifier for object type attributes.'


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of a value without running Terraform.

    `known` is the constant of a primitive type, else None; `parts` are the elements of a literal list or object.
    `sensitive` is None if that cannot be told.
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


Refuse = Callable[[Node, Node, str], object]
"""An error in a type: its first node, its last node, and the message."""


def type_of_constraint(expression: Node, refuse: Refuse = lambda *_: None) -> Type:
    """The type that a variable's `type` states; dynamic where it is not understood."""
    word, call = keyword(expression), call_of(expression)
    if call is not None:
        return _constructed(call, refuse)
    if word is None:
        refuse(expression, expression, _NO_TYPE)
    elif word not in (*PRIMITIVE, "any"):
        unknown = _OPTIONAL if word == "optional" else f'The keyword "{word}" is not a valid type specification.'
        refuse(expression, expression, _CONSTRUCTORS.get(word, unknown))
    if word in ("list", "map"):  # without an argument, these mean collections of any type
        return (word, DYNAMIC)
    return word if word in PRIMITIVE else DYNAMIC


def _constructed(call: Call, refuse: Refuse) -> Type:
    """The type that a call such as `list(string)` states."""
    name, arguments, opening = call.name, call.arguments, call.node.children[1]
    if name in (*PRIMITIVE, "any"):
        refuse(opening, call.closing, f'Primitive type keyword "{name}" does not expect arguments.')
    elif name == "optional":
        refuse(call.name_node, call.name_node, _OPTIONAL)
    elif name not in _CONSTRUCTORS:
        refuse(call.node, call.node, f'Keyword "{name}" is not a valid type constructor.')
    elif len(arguments) != 1:
        first, last = (arguments[1], arguments[-1]) if arguments else (opening, call.closing)
        refuse(first, last, _CONSTRUCTORS[name])
    elif name in COLLECTIONS:
        return (name, type_of_constraint(arguments[0], refuse))
    elif (content := literal_collection(arguments[0])) is not None and content.type == name:
        if name == "tuple":
            return (name, tuple(type_of_constraint(one, refuse) for one in children_of_type(content, "expression")))
        return (name, tuple(_attribute(one, refuse) for one in children_of_type(content, "object_elem")))
    return DYNAMIC


def _attribute(element: Node, refuse: Refuse) -> tuple[str, Type, bool]:
    """An attribute of an object type, which may be wrapped in `optional(type, default)`."""
    key, value = children_of_type(element, "expression")
    call = call_of(value)
    optional = call is not None and call.name == "optional"
    if call is not None and optional and not call.arguments:
        detail = "Optional attribute modifier requires the attribute type as its argument."
        refuse(call.node.children[1], call.closing, detail)
        return source(key).strip('"'), DYNAMIC, False
    kind = type_of_constraint(call.arguments[0] if call is not None and optional else value, refuse)
    return source(key).strip('"'), kind, not optional


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
_SIGNATURES = """
abs(num:n)=n abspath(path:s)=s alltrue(list:lb)=b anytrue(list:lb)=b base64decode(str:s)=s base64encode(str:s)=s
base64gzip(str:s)=s base64sha256(str:s)=s base64sha512(str:s)=s basename(path:s)=s bcrypt(str:s ...cost:n)=s
can(expression:*)=b ceil(num:n)=n chomp(str:s)=s chunklist(list:l* size:n)=* cidrhost(prefix:s hostnum:n)=s
cidrnetmask(prefix:s)=s cidrsubnet(prefix:s newbits:n netnum:n)=s cidrsubnets(prefix:s ...newbits:n)=ls
coalesce(...vals:*)=* coalescelist(...vals:lot)=* compact(list:ls)=ls concat(...seqs:lot)=* contains(list:seq value:*)=b
csvdecode(str:s)=* dirname(path:s)=s distinct(list:l*)=* element(list:lot index:n)=* endswith(str:s suffix:s)=b
ephemeralasnull(value:*)=* file(path:s)=s filebase64(path:s)=s filebase64sha256(path:s)=s filebase64sha512(path:s)=s
fileexists(path:s)=b filemd5(path:s)=s fileset(path:s pattern:s)=ts filesha1(path:s)=s filesha256(path:s)=s
filesha512(path:s)=s flatten(list:seq)=* floor(num:n)=n format(format:s ...args:*)=s formatdate(format:s time:s)=s
formatlist(format:s ...args:*)=ls indent(spaces:n str:s)=s index(list:lot value:*)=n issensitive(value:*)=b
join(separator:s ...lists:ls)=s jsondecode(str:s)=* jsonencode(val:*)=s keys(inputMap:map)=* length(value:len)=n
log(num:n base:n)=n lookup(inputMap:map key:s ...default:*)=* lower(str:s)=s
matchkeys(values:l* keys:l* searchset:l*)=* max(...numbers:n)=n md5(str:s)=s merge(...maps:map)=* min(...numbers:n)=n
nonsensitive(value:*)=* one(list:seq)=* parseint(number:* base:n)=n pathexpand(path:s)=s plantimestamp()=s
pow(num:n power:n)=n range(...params:n)=ln regex(pattern:s string:s)=* regexall(pattern:s string:s)=*
replace(str:s substr:s replace:s)=s reverse(list:seq)=* rsadecrypt(ciphertext:s privatekey:s)=s sensitive(value:*)=*
setintersection(first_set:t* ...other_sets:t*)=t* setproduct(...sets:seq)=* setsubtract(a:t* b:t*)=t*
setunion(first_set:t* ...other_sets:t*)=t* sha1(str:s)=s sha256(str:s)=s sha512(str:s)=s signum(num:n)=n
slice(list:lot start_index:n end_index:n)=* sort(list:ls)=ls split(separator:s str:s)=ls startswith(str:s prefix:s)=b
strcontains(str:s substr:s)=b strrev(str:s)=s substr(str:s offset:n length:n)=s sum(list:seq)=n
templatefile(path:s vars:map)=* templatestring(template:s vars:map)=s textdecodebase64(source:s encoding:s)=s
textencodebase64(string:s encoding:s)=s timeadd(timestamp:s duration:s)=s timecmp(timestamp_a:s timestamp_b:s)=n
timestamp()=s title(str:s)=s tobool(v:b)=b tolist(v:seq)=* tomap(v:map)=* tonumber(v:n)=n toset(v:seq)=* tostring(v:s)=s
transpose(values:m*)=*
trim(str:s cutset:s)=s trimprefix(str:s prefix:s)=s trimspace(str:s)=s trimsuffix(str:s suffix:s)=s
try(...expressions:*)=* upper(str:s)=s urlencode(str:s)=s uuid()=s uuidv5(namespace:s name:s)=s values(mapping:map)=*
yamldecode(src:s)=* yamlencode(value:*)=s zipmap(keys:ls values:lot)=*
"""
_COLLECTED = {"l": "list", "t": "set", "m": "map"}
_WORDS = {"s": "string", "n": "number", "b": "bool", "*": DYNAMIC}
_KINDS = {
    "seq": SEQUENCES,
    "lot": ("list", "tuple"),
    "map": MAPPINGS,
    "len": ("string", *SEQUENCES, *MAPPINGS),
}
_KIND_NAMES = {"seq": "a list, set or tuple", "lot": "a list or tuple", "map": "a map or object", "len": "a collection"}


class Parameter(NamedTuple):
    """A parameter of a function: its type, or the kinds of values that it takes if any type is converted."""

    name: str
    type: Type
    kinds: str = ""


class Signature(NamedTuple):
    """A function's parameters, the one that takes all further arguments, and the type of its result."""

    parameters: tuple[Parameter, ...]
    rest: Parameter | None
    result: Type

    def parameter(self, index: int) -> Parameter | None:
        """The parameter of an argument; None if there are too many."""
        return self.parameters[index] if index < len(self.parameters) else self.rest


def takes(parameter: Parameter, value: Value) -> str:
    """Why a parameter does not take a value; empty if it does or may."""
    if value.null:
        return "" if parameter.type == DYNAMIC else "argument must not be null"
    if not parameter.kinds:
        return conversion_problem(value, parameter.type)
    fits = value.kind in (DYNAMIC, *_KINDS[parameter.kinds])
    return "" if fits else f"must be {_KIND_NAMES[parameter.kinds]}, not {value.kind}"


def _signature(parameters: str, result: str) -> Signature:
    made = [_parameter(word.removeprefix("...")) for word in parameters.split()]
    variadic = "..." in parameters
    return Signature(tuple(made[:-1] if variadic else made), made[-1] if variadic else None, _type(result))


def _parameter(word: str) -> Parameter:
    name, _, kind = word.partition(":")
    return Parameter(name, DYNAMIC, kind) if kind in _KINDS else Parameter(name, _type(kind))


def _type(word: str) -> Type:
    return (_COLLECTED[word[0]], _WORDS[word[1]]) if len(word) == 2 else _WORDS[word]


SIGNATURES = {
    name: _signature(parameters, result)
    for name, parameters, result in re.findall(r"(\w+)\(([^)]*)\)=(\S+)", _SIGNATURES)
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
        yield text.error(call.name_node, "Call to unknown function", f'There is no function named "{name}"{place}')
        return
    if call.expanded:
        return
    named, variadic = [parameter.name for parameter in signature.parameters], signature.rest is not None
    given = len(call.arguments)
    if given < len(named):
        least = "at least " if variadic else ""
        detail = f'Function "{call.name}" expects {least}{len(named)} argument(s). Missing value for "{named[given]}".'
        yield text.error(call.closing, "Not enough function arguments", detail)
    elif given > len(named) and not variadic:
        detail = f'Function "{call.name}" expects only {len(named)} argument(s).'
        yield text.error(first_part(text, call.arguments[len(named)]), "Too many function arguments", detail)
