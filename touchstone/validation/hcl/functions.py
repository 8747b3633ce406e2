"""Terraform's built-in functions: whether a call names one and has the right number of arguments."""

import re
from collections.abc import Iterator
from functools import cache

from touchstone.validation.hcl.constants import first_part
from touchstone.validation.hcl.expressions import Call
from touchstone.validation.hcl.positions import SourceText
from touchstone.validation.hcl.suggestions import did_you_mean
from touchstone.validation.protocol import Diagnostic

# From `terraform metadata functions -json` of Terraform 1.11.4; an ellipsis takes any number of further arguments.
_SIGNATURES = """
abs(num), abspath(path), alltrue(list), anytrue(list), base64decode(str), base64encode(str), base64gzip(str)
base64sha256(str), base64sha512(str), basename(path), bcrypt(str ...), can(expression), ceil(num), chomp(str)
chunklist(list size), cidrhost(prefix hostnum), cidrnetmask(prefix), cidrsubnet(prefix newbits netnum)
cidrsubnets(prefix ...), coalesce(...), coalescelist(...), compact(list), concat(...), contains(list value)
csvdecode(str), dirname(path), distinct(list), element(list index), endswith(str suffix), ephemeralasnull(value)
file(path), filebase64(path), filebase64sha256(path), filebase64sha512(path), fileexists(path), filemd5(path)
fileset(path pattern), filesha1(path), filesha256(path), filesha512(path), flatten(list), floor(num)
format(format ...), formatdate(format time), formatlist(format ...), indent(spaces str), index(list value)
issensitive(value), join(separator ...), jsondecode(str), jsonencode(val), keys(inputMap), length(value)
log(num base), lookup(inputMap key ...), lower(str), matchkeys(values keys searchset), max(...), md5(str), merge(...)
min(...), nonsensitive(value), one(list), parseint(number base), pathexpand(path), plantimestamp(), pow(num power)
range(...), regex(pattern string), regexall(pattern string), replace(str substr replace), reverse(list)
rsadecrypt(ciphertext privatekey), sensitive(value), setintersection(first_set ...), setproduct(...), setsubtract(a b)
setunion(first_set ...), sha1(str), sha256(str), sha512(str), signum(num), slice(list start_index end_index)
sort(list), split(separator str), startswith(str prefix), strcontains(str substr), strrev(str)
substr(str offset length), sum(list), templatefile(path vars), templatestring(template vars)
textdecodebase64(source encoding), textencodebase64(string encoding), timeadd(timestamp duration)
timecmp(timestamp_a timestamp_b), timestamp(), title(str), tobool(v), tolist(v), tomap(v), tonumber(v), toset(v)
tostring(v), transpose(values), trim(str cutset), trimprefix(str prefix), trimspace(str), trimsuffix(str suffix)
try(...), upper(str), urlencode(str), uuid(), uuidv5(namespace name), values(mapping), yamldecode(src)
yamlencode(value), zipmap(keys values)
"""

_KNOWN_ELSEWHERE = frozenset({"list", "map"})  # removed functions whose error message names the replacement


@cache
def _parameters() -> dict[str, tuple[str, ...]]:
    return {name: tuple(names.split()) for name, names in re.findall(r"(\w+)\(([^)]*)\)", _SIGNATURES)}


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
    known = _parameters()
    parameters = known.get(name) if namespaces in ([], ["core"]) else None
    if namespaces and parameters is None:
        detail = f'There is no function named "{name}" in namespace "{"::".join(namespaces)}::".'
        yield text.error(text.span(call.name_node), "Call to unknown function", detail)
    elif parameters is None:
        detail = f'There is no function named "{name}".{did_you_mean(name, known)}'
        yield text.error(text.span(call.name_node), "Call to unknown function", detail)
    elif not call.expanded:
        yield from _count_errors(text, call, parameters)


def _count_errors(text: SourceText, call: Call, parameters: tuple[str, ...]) -> Iterator[Diagnostic]:
    variadic = parameters[-1:] == ("...",)
    named = parameters[:-1] if variadic else parameters
    given = len(call.arguments)
    if given < len(named):
        least = "at least " if variadic else ""
        detail = f'Function "{call.name}" expects {least}{len(named)} argument(s). Missing value for "{named[given]}".'
        yield text.error(text.span(call.closing), "Not enough function arguments", detail)
    elif given > len(named) and not variadic:
        detail = f'Function "{call.name}" expects only {len(named)} argument(s).'
        yield text.error(first_part(text, call.arguments[len(named)]), "Too many function arguments", detail)
