"""Resources checked against their provider's schema."""

import json
from typing import Any

import pytest

from tests.validation.hcl.repairs import block, nested
from touchstone.validation.hcl import check_module

INSTANCE = block(
    'ami! arn= id?= instance_type rules:["list",["object",{"x":"string"}]]',
    disk=nested("size!:number", "list", 1, 2, tag=nested("key", "set")),
    network=nested("name", "single"),
    timeouts={"nesting_mode": "single", "block": {"attributes": {"create": {"optional": True}}}},
)
INSTANCE["block"]["attributes"]["policy"] = {
    "nested_type": {"nesting_mode": "single", "attributes": {}},
    "optional": True,
}
AMI = block('owners!:["list","string"]')
PROVIDER = {"resource_schemas": {"aws_instance": INSTANCE}, "data_source_schemas": {"aws_ami": AMI}}
DOCUMENT = {"format_version": "1.0", "provider_schemas": {"registry.terraform.io/hashicorp/aws": PROVIDER}}
COMPLETE = 'ami = "x"\ndisk {\n  size = 1\n}\n'
META = """
  count      = 1
  depends_on = []
  provider   = aws.west
  lifecycle {
    ignore_changes = [ami]
  }
  connection {
    host = "x"
  }
  provisioner "local-exec" {
    command = "x"
  }
  timeouts {
    create = "1m"
  }
"""
DYNAMIC = 'ami = "x"\ndynamic "disk" {\n  for_each = [1]\n  content {\n    %s = disk.value\n  }\n}\n'


def check(text: str, schema: object = DOCUMENT) -> list[str]:
    """The errors of a module, each as line, column, summary and detail."""
    found = check_module({"main.tf": text.encode()}, json.dumps(schema))
    assert (found.fidelity, found.compiled) == ("static+schema", True)
    return [f"{error.line},{error.column} {error.summary}: {error.detail}" for error in found.diagnostics]


def errors(body: str, schema: object = DOCUMENT) -> list[str]:
    """The errors of a resource, whose content starts in line 2."""
    return check(f'resource "aws_instance" "a" {{\n{body}\n}}\n', schema)


def spelled(short: str) -> str:
    """An error from its short form: `+name` is an unexpected argument, `+name{` a block, `-name` a missing argument."""
    place, words, hint = (*short.split(" ", 2), "")[:3]
    name = words.strip("+-{")
    if words.endswith("{"):
        detail = f'Unsupported block type: Blocks of type "{name}" are not expected here.'
    elif words.startswith("+"):
        detail = f'Unsupported argument: An argument named "{name}" is not expected here.'
    elif words.startswith("-"):
        detail = f'Missing required argument: The argument "{name}" is required, but no definition was found.'
    else:
        return short
    return " ".join(filter(None, (place, detail, hint)))


TOO_FEW = '1,29 Insufficient disk blocks: At least 1 "disk" blocks are required.'
EQUALS = "If so, use the equals sign to assign it a value."
BODIES: dict[str, tuple[str, list[str]]] = {
    "complete": (COMPLETE, []),
    "meta-arguments and their blocks": (COMPLETE + META, []),
    "empty": ("", [TOO_FEW, "1,29 -ami"]),
    "in nested blocks": (
        'ami = "x"\ndisk {\n  tag {\n    kye = 1\n  }\n}\n',
        ["3,6 -size", '5,5 +kye Did you mean "key"?'],
    ),
    "too many blocks": (
        COMPLETE + "disk {\n  size = 1\n}\n" * 2,
        ['9,6 Too many disk blocks: No more than 2 "disk" blocks are allowed'],
    ),
    "a second block where one is allowed": (
        COMPLETE + "network {}\nnetwork {}\n",
        [
            '7,1 Duplicate network block: Only one block of type "network" is allowed. '
            "Previous definition was at main.tf:6,1-8."
        ],
    ),
    "an argument as block and a block as argument": (
        COMPLETE + 'instance_type {}\nnetwork = "x"\n',
        [
            f'6,1 +instance_type{{ Did you mean to define argument "instance_type"? {EQUALS}',
            '7,1 +network Did you mean to define a block of type "network"?',
        ],
    ),
    "a list of objects as block": (COMPLETE + 'rules {\n  x = "1"\n}\npolicy = {}\n', []),
    "a nested attribute as block": (
        COMPLETE + "policy {\n}\n",
        [f'6,1 +policy{{ Did you mean to define argument "policy"? {EQUALS}'],
    ),
    "a nested attribute as dynamic block": (
        COMPLETE + 'dynamic "policy" {\n  for_each = []\n  content {}\n}\n',
        ["6,9 +policy{"],
    ),
    "a label": (
        COMPLETE + 'network "x" {}\n',
        ["6,9 Extraneous label for network: No labels are expected for network blocks."],
    ),
    "a dynamic block for its label": (DYNAMIC % "size", []),
    "in a dynamic block": (DYNAMIC % "sizes", ["5,11 -size", '6,5 +sizes Did you mean "size"?']),
    "a value that only the provider sets": (
        COMPLETE + 'arn = "x"\n',
        [
            '6,7 Value for unconfigurable attribute: Can\'t configure a value for "arn": its value will be decided '
            "automatically based on the result of applying this configuration."
        ],
    ),
    "null for it": (COMPLETE + "arn = null\n", []),
    # The content of an escaping block belongs to the resource.
    "_": ("_ {\n  ami = 1\n  disk {\n    size = 1\n  }\n}", []),
    "_ without content": (f"{COMPLETE}_ {{\n}}", []),
    "beside _": (f"{COMPLETE}colour = 1\n_ {{\n}}", ["6,1 +colour"]),
    "in _": (f"{COMPLETE}_ {{\n  colour = 1\n}}", ["7,3 +colour"]),
    "a meta-argument in _": (f"{COMPLETE}_ {{\n  count = 1\n}}", ["7,3 +count"]),
    "a block of its own in _": (f"{COMPLETE}_ {{\n  lifecycle {{\n  }}\n}}", ["7,3 +lifecycle{"]),
    "a reference in _": (
        f"{COMPLETE}_ {{\n  instance_type = var.no\n}}",
        [
            '7,19 Reference to undeclared input variable: An input variable with the name "no" has not been declared. '
            'This variable can be declared with a variable "no" {} block.'
        ],
    ),
    "_ that lacks a block": ("_ {\n  ami = 1\n}", [TOO_FEW]),
    "_ with a label": (f'{COMPLETE}_ "x" {{\n}}', ["6,3 Extraneous label for _: No labels are expected for _ blocks."]),
}


@pytest.mark.parametrize("what", BODIES)
def test_the_body_of_a_resource(what: str) -> None:
    body, expected = BODIES[what]
    assert errors(body) == [spelled(short) for short in expected]


MATCHED = {
    f"matched as {kind} {name}": {**INSTANCE["block"], "matched_block_type": kind, "matched_block_name": name}
    for kind, name in (
        ("resource", "aws_instance"),
        ("aws_instance", "resource"),
        ("resource", "aws_instance.web"),
        ("", "aws_instance"),
    )
}
FORMS = {"document": DOCUMENT, "provider": PROVIDER, "types": {"aws_instance": INSTANCE}, **MATCHED}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_schema_is_read(form: str) -> None:
    assert errors(COMPLETE, FORMS[form]) == []
    wrong = [TOO_FEW, spelled("1,29 -ami"), spelled('2,1 +instance_typ Did you mean "instance_type"?')]
    assert errors("instance_typ = 1", FORMS[form]) == wrong


@pytest.mark.parametrize(
    "other",
    [
        {"matched_block_type": "provider", "matched_block_name": "aws"},
        {"matched_block_type": "data", "matched_block_name": "aws_instance"},
        {"matched_block_type": "resource", "matched_block_name": "aws_instance", "attributes": {}, "block_types": None},
        {"matched_block_type": None, "matched_block_name": None},
    ],
)
def test_the_schema_of_another_block_says_nothing(other: dict[str, Any]) -> None:
    assert errors("colour = 1", {**INSTANCE["block"], **other}) == []


def test_unknown_types_of_a_provider_that_is_known_as_a_whole() -> None:
    kinds = ("resource", "aws_instanse"), ("data", "aws_instance"), ("resource", "aws_ami"), ("resource", "gcp_x")
    text = "".join(f'{kind} "{name}" "a" {{}}\n' for kind, name in kinds)
    lacks, intend = "The provider hashicorp/aws does not support", "\n\nDid you intend to use the"
    assert check(text) == [
        f'1,10 Invalid resource type: {lacks} resource type "aws_instanse". Did you mean "aws_instance"?',
        f'2,6 Invalid data source: {lacks} data source "aws_instance".{intend} managed resource type "aws_instance"? '
        'If so, declare this using a "resource" block instead of a "data" block.',
        f'3,10 Invalid resource type: {lacks} resource type "aws_ami".{intend} data source "aws_ami"? '
        'If so, declare this using a "data" block instead of a "resource" block.',
    ]
    assert check(text, PROVIDER) == []


def test_a_provider_from_elsewhere_is_not_the_one_that_is_known() -> None:
    before = 'terraform {\n  required_providers {\n    aws = {\n      source = "example/aws"\n    }\n  }\n}\n'
    after = (
        'resource "aws_something" "a" {}\nresource "aws_instance" "b" {}\noutput "o" {\n  value = aws_instance.b.x\n}\n'
    )
    assert check(before + after) == []
    assert len(check(after)) == 3


def test_a_type_of_two_providers_is_checked_against_the_chosen_one() -> None:
    beta = {"resource_schemas": {"google_x": {"block": {"attributes": {"new": {"optional": True}}}}}}
    stable = {"resource_schemas": {"google_x": {"block": {"attributes": {}}}}}
    names = {"registry.terraform.io/hashicorp/google": stable, "registry.terraform.io/hashicorp/google-beta": beta}
    usual = 'resource "google_x" "a" {\n  new = 1\n}\noutput "o" {\n  value = google_x.a.new\n}\n'
    chosen = usual.replace("new = 1", "new = 1\n  provider = google-beta")
    assert check(chosen, {"provider_schemas": names}) == []
    assert check(usual, {"provider_schemas": names}) == [spelled("2,3 +new")]


def test_references_to_attributes_are_checked() -> None:
    before = 'output "o" {\n  value = [aws_instance.a.arn, aws_instance.a.disk[0].size, aws_instance.a.ipp]\n}\n'
    assert check(f'{before}resource "aws_instance" "a" {{\n{COMPLETE}}}\n') == [
        '2,75 Unsupported attribute: This object has no argument, nested block, or exported attribute named "ipp". '
        'Did you mean "id"?'
    ]


def test_overridden_resources_lack_nothing_for_certain() -> None:
    files = {
        "main.tf": b'resource "aws_instance" "a" {\n  ami = "x"\n}\n',
        "override.tf": b'resource "aws_instance" "a" {\n  disk {\n    size = 1\n  }\n}\n',
    }
    assert check_module(files, json.dumps(DOCUMENT)).diagnostics == ()


@pytest.mark.parametrize(
    ("schema", "what"),
    [
        *((schema, "not valid JSON") for schema in ("{", "nonsense", "[" * 100_000)),
        *((schema, "JSON but no schema") for schema in ("[]", "1", "{}", '{"aws_instance": {"attributes": {}}}')),
    ],
)
def test_what_is_no_schema_is_refused_in_one_line(schema: str, what: str) -> None:
    with pytest.raises(ValueError, match=rf"^resource schema is {what}: [^\n]+$"):
        check_module({"main.tf": b""}, schema)


@pytest.mark.parametrize("schema", [None, "", "  \n"])
def test_without_a_schema(schema: str | None) -> None:
    findings = check_module({"main.tf": b'resource "aws_instance" "a" {\n  anything = 1\n}\n'}, schema)
    assert (findings.fidelity, findings.diagnostics) == ("static", ())


@pytest.mark.parametrize(
    "broken", [{"block": {"attributes": 3, "block_types": []}}, {"block": {"block_types": {"x": 1}}}]
)
def test_schemas_of_odd_shape_are_taken_as_far_as_they_go(broken: object) -> None:
    errors("x {}", {"aws_instance": broken})
