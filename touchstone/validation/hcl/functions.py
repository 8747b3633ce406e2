"""Terraform's built-in functions: whether a call names one, and the number and types of its arguments."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from touchstone.validation.hcl.expressions import Call, first_part
from touchstone.validation.hcl.positions import SourceText
from touchstone.validation.hcl.suggestions import did_you_mean
from touchstone.validation.hcl.types import DYNAMIC, MAPPINGS, SEQUENCES, Type, Value, conversion_problem
from touchstone.validation.protocol import Diagnostic

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


def _read_signatures() -> dict[str, Signature]:
    return {name: _signature(parameters, result) for name, parameters, result in _LISTED.findall(_SIGNATURES)}


def _signature(parameters: str, result: str) -> Signature:
    made = [_parameter(word.removeprefix("...")) for word in parameters.split()]
    variadic = "..." in parameters
    return Signature(tuple(made[:-1] if variadic else made), made[-1] if variadic else None, _type(result))


def _parameter(word: str) -> Parameter:
    name, _, kind = word.partition(":")
    return Parameter(name, DYNAMIC, kind) if kind in _KINDS else Parameter(name, _type(kind))


def _type(word: str) -> Type:
    return (_COLLECTED[word[0]], _WORDS[word[1]]) if len(word) == 2 else _WORDS[word]


_COLLECTED = {"l": "list", "t": "set", "m": "map"}
_LISTED = re.compile(r"(\w+)\(([^)]*)\)=(\S+)")
SIGNATURES = _read_signatures()

_KNOWN_ELSEWHERE = frozenset({"list", "map"})  # removed functions whose error message names the replacement


def is_of_provider(call: Call) -> bool:
    """Whether a provider has the function, such as `provider::aws::arn_parse`, so that nothing is known of it."""
    return _words(call)[:-1][:1] == ["provider"]


def _words(call: Call) -> list[str]:
    """The namespaces of a function, then its name."""
    return "".join(call.name.split()).split("::")


def call_errors(text: SourceText, call: Call) -> Iterator[Diagnostic]:
    """The errors of a call, apart from its argument values."""
    *namespaces, name = _words(call)
    if is_of_provider(call) or name in _KNOWN_ELSEWHERE:
        return
    signature = SIGNATURES.get(name) if namespaces in ([], ["core"]) else None
    if namespaces and signature is None:
        detail = f'There is no function named "{name}" in namespace "{"::".join(namespaces)}::".'
        yield text.error(text.span(call.name_node), "Call to unknown function", detail)
    elif signature is None:
        detail = f'There is no function named "{name}".{did_you_mean(name, SIGNATURES)}'
        yield text.error(text.span(call.name_node), "Call to unknown function", detail)
    elif not call.expanded:
        yield from _count_errors(text, call, signature)


def _count_errors(text: SourceText, call: Call, signature: Signature) -> Iterator[Diagnostic]:
    named, variadic = [parameter.name for parameter in signature.parameters], signature.rest is not None
    given = len(call.arguments)
    if given < len(named):
        least = "at least " if variadic else ""
        detail = f'Function "{call.name}" expects {least}{len(named)} argument(s). Missing value for "{named[given]}".'
        yield text.error(text.span(call.closing), "Not enough function arguments", detail)
    elif given > len(named) and not variadic:
        detail = f'Function "{call.name}" expects only {len(named)} argument(s).'
        yield text.error(first_part(text, call.arguments[len(named)]), "Too many function arguments", detail)
