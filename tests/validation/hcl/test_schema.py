"""Resources checked against their provider's schema."""

import json
from typing import Any

import pytest

from touchstone.validation.hcl import check_module
from touchstone.validation.protocol import Diagnostic

INSTANCE: dict[str, Any] = {
    "version": 1,
    "block": {
        "attributes": {
            "ami": {"type": "string", "required": True},
            "arn": {"type": "string", "computed": True},
            "id": {"type": "string", "optional": True, "computed": True},
            "instance_type": {"type": "string", "optional": True},
            "rules": {"type": ["list", ["object", {"x": "string"}]], "optional": True},
            "policy": {"nested_type": {"nesting_mode": "single", "attributes": {}}, "optional": True},
        },
        "block_types": {
            "disk": {
                "nesting_mode": "list",
                "min_items": 1,
                "max_items": 2,
                "block": {
                    "attributes": {"size": {"type": "number", "required": True}},
                    "block_types": {
                        "tag": {"nesting_mode": "set", "block": {"attributes": {"key": {"optional": True}}}}
                    },
                },
            },
            "network": {"nesting_mode": "single", "block": {"attributes": {"name": {"optional": True}}}},
            "timeouts": {"nesting_mode": "single", "block": {"attributes": {"create": {"optional": True}}}},
        },
    },
}
AMI = {"version": 0, "block": {"attributes": {"owners": {"type": ["list", "string"], "required": True}}}}
PROVIDER = {"resource_schemas": {"aws_instance": INSTANCE}, "data_source_schemas": {"aws_ami": AMI}}
DOCUMENT = {"format_version": "1.0", "provider_schemas": {"registry.terraform.io/hashicorp/aws": PROVIDER}}
FORMS = {"document": DOCUMENT, "provider": PROVIDER, "types": {"aws_instance": INSTANCE}}


def found(body: str, schema: object = DOCUMENT, before: str = "") -> tuple[Diagnostic, ...]:
    text = f'{before}resource "aws_instance" "a" {{\n{body}\n}}\n'
    findings = check_module({"main.tf": text.encode()}, json.dumps(schema))
    assert findings.fidelity == "static+schema"
    assert findings.compiled
    return findings.diagnostics


def words(body: str, schema: object = DOCUMENT) -> list[tuple[str, str]]:
    return [(error.summary, error.detail) for error in found(body, schema)]


COMPLETE = 'ami = "x"\ndisk {\n  size = 1\n}\n'


@pytest.mark.parametrize("schema", FORMS.values(), ids=FORMS.keys())
def test_every_form_of_schema_is_read(schema: object) -> None:
    assert words(COMPLETE, schema) == []
    assert words(COMPLETE + "instance_typ = 1", schema) == [
        (
            "Unsupported argument",
            'An argument named "instance_typ" is not expected here. Did you mean "instance_type"?',
        )
    ]


def test_meta_arguments_and_blocks_are_always_fine() -> None:
    body = """
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
    assert words(COMPLETE + body) == []


def test_missing_arguments_and_blocks() -> None:
    errors = found("")
    assert [(error.summary, error.detail, error.line, error.column) for error in errors] == [
        ("Insufficient disk blocks", 'At least 1 "disk" blocks are required.', 1, 29),
        ("Missing required argument", 'The argument "ami" is required, but no definition was found.', 1, 29),
    ]


def test_nested_blocks_are_looked_into() -> None:
    body = 'ami = "x"\ndisk {\n  tag {\n    kye = 1\n  }\n}\n'
    assert words(body) == [
        ("Missing required argument", 'The argument "size" is required, but no definition was found.'),
        ("Unsupported argument", 'An argument named "kye" is not expected here. Did you mean "key"?'),
    ]


def test_too_many_blocks() -> None:
    errors = found(COMPLETE + "disk {\n  size = 1\n}\n" * 2)
    assert [(error.summary, error.detail, error.line, error.column) for error in errors] == [
        ("Too many disk blocks", 'No more than 2 "disk" blocks are allowed', 9, 6)
    ]


def test_second_block_where_one_is_allowed() -> None:
    assert words(COMPLETE + "network {}\nnetwork {}\n") == [
        (
            "Duplicate network block",
            'Only one block of type "network" is allowed. Previous definition was at main.tf:6,1-8.',
        )
    ]


def test_argument_as_block_and_block_as_argument() -> None:
    assert words(COMPLETE + 'instance_type {}\nnetwork = "x"\n') == [
        (
            "Unsupported block type",
            'Blocks of type "instance_type" are not expected here. Did you mean to define argument "instance_type"? '
            "If so, use the equals sign to assign it a value.",
        ),
        (
            "Unsupported argument",
            'An argument named "network" is not expected here. Did you mean to define a block of type "network"?',
        ),
    ]


def test_lists_of_objects_may_be_blocks_and_nested_attributes_may_not() -> None:
    assert words(COMPLETE + 'rules {\n  x = "1"\n}\npolicy = {}\n') == []
    argument = 'Did you mean to define argument "policy"? If so, use the equals sign to assign it a value.'
    block, dynamic = "policy {\n}\n", 'dynamic "policy" {\n  for_each = []\n  content {}\n}\n'
    unexpected = ("Unsupported block type", 'Blocks of type "policy" are not expected here.')
    assert words(COMPLETE + block) == [(unexpected[0], f"{unexpected[1]} {argument}")]
    assert words(COMPLETE + dynamic) == [unexpected]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("resource", "aws_instance"),
        ("aws_instance", "resource"),
        ("resource", "aws_instance.web"),
        ("", "aws_instance"),
    ],
)
def test_the_schema_of_one_matched_block_is_read(kind: str, name: str) -> None:
    matched = {**INSTANCE["block"], "matched_block_type": kind, "matched_block_name": name}
    assert words(COMPLETE, matched) == []
    assert [summary for summary, _ in words("colour = 1", matched)] == [
        "Insufficient disk blocks",
        "Missing required argument",
        "Unsupported argument",
    ]


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
    assert words("colour = 1", {**INSTANCE["block"], **other}) == []


def test_labels_of_nested_blocks() -> None:
    assert words(COMPLETE + 'network "x" {}\n') == [
        ("Extraneous label for network", "No labels are expected for network blocks.")
    ]


def test_dynamic_blocks_stand_for_their_label() -> None:
    dynamic = 'ami = "x"\ndynamic "disk" {\n  for_each = [1]\n  content {\n    %s = disk.value\n  }\n}\n'
    assert words(dynamic % "size") == []
    assert words(dynamic % "sizes") == [
        ("Missing required argument", 'The argument "size" is required, but no definition was found.'),
        ("Unsupported argument", 'An argument named "sizes" is not expected here. Did you mean "size"?'),
    ]


def test_values_that_only_the_provider_sets() -> None:
    errors = found(COMPLETE + 'arn = "x"\n')
    assert [(error.summary, error.detail, error.line, error.column, error.end_column) for error in errors] == [
        (
            "Value for unconfigurable attribute",
            'Can\'t configure a value for "arn": its value will be decided automatically based on the result of '
            "applying this configuration.",
            6,
            7,
            10,
        )
    ]
    assert words(COMPLETE + "arn = null\n") == []


def test_unknown_types_of_a_provider_that_is_known_as_a_whole() -> None:
    text = (
        b'resource "aws_instanse" "a" {}\ndata "aws_instance" "b" {}\n'
        b'resource "aws_ami" "c" {}\nresource "gcp_x" "d" {}\n'
    )
    details = [error.detail for error in check_module({"main.tf": text}, json.dumps(DOCUMENT)).diagnostics]
    assert details == [
        'The provider hashicorp/aws does not support resource type "aws_instanse". Did you mean "aws_instance"?',
        'The provider hashicorp/aws does not support data source "aws_instance".\n\nDid you intend to use the managed '
        'resource type "aws_instance"? If so, declare this using a "resource" block instead of a "data" block.',
        'The provider hashicorp/aws does not support resource type "aws_ami".\n\nDid you intend to use the data source '
        '"aws_ami"? If so, declare this using a "data" block instead of a "resource" block.',
    ]
    assert check_module({"main.tf": text}, json.dumps(PROVIDER)).diagnostics == ()


def test_a_provider_from_elsewhere_is_not_the_one_that_is_known() -> None:
    before = 'terraform {\n  required_providers {\n    aws = {\n      source = "example/aws"\n    }\n  }\n}\n'
    after = (
        'resource "aws_something" "a" {}\nresource "aws_instance" "b" {}\noutput "o" {\n  value = aws_instance.b.x\n}\n'
    )
    assert check_module({"main.tf": (before + after).encode()}, json.dumps(DOCUMENT)).diagnostics == ()
    known = check_module({"main.tf": after.encode()}, json.dumps(DOCUMENT)).diagnostics
    assert {error.summary for error in known} == {
        "Invalid resource type",
        "Insufficient disk blocks",
        "Missing required argument",
    }


def test_a_type_of_two_providers_is_checked_against_the_chosen_one() -> None:
    beta = {"resource_schemas": {"google_x": {"block": {"attributes": {"new": {"optional": True}}}}}}
    stable = {"resource_schemas": {"google_x": {"block": {"attributes": {}}}}}
    names = {"registry.terraform.io/hashicorp/google": stable, "registry.terraform.io/hashicorp/google-beta": beta}
    schema = json.dumps({"provider_schemas": names})
    chosen = b'resource "google_x" "a" {\n  provider = google-beta\n  new = 1\n}\n'
    chosen += b'output "o" {\n  value = google_x.a.new\n}\n'
    assert check_module({"main.tf": chosen}, schema).diagnostics == ()
    usual = chosen.replace(b"  provider = google-beta\n", b"")
    assert [error.summary for error in check_module({"main.tf": usual}, schema).diagnostics] == ["Unsupported argument"]


def test_references_to_attributes_are_checked() -> None:
    before = 'output "o" {\n  value = [aws_instance.a.arn, aws_instance.a.disk[0].size, aws_instance.a.ipp]\n}\n'
    assert [error.detail for error in found(COMPLETE, before=before)] == [
        'This object has no argument, nested block, or exported attribute named "ipp". Did you mean "id"?'
    ]


def test_overridden_resources_lack_nothing_for_certain() -> None:
    files = {
        "main.tf": b'resource "aws_instance" "a" {\n  ami = "x"\n}\n',
        "override.tf": b'resource "aws_instance" "a" {\n  disk {\n    size = 1\n  }\n}\n',
    }
    assert check_module(files, json.dumps(DOCUMENT)).diagnostics == ()


@pytest.mark.parametrize("schema", ["{", "nonsense", "[" * 100_000])
def test_schema_that_is_no_json_is_refused_in_one_line(schema: str) -> None:
    with pytest.raises(ValueError, match=r"^resource schema is not valid JSON: [^\n]+$"):
        check_module({"main.tf": b""}, schema)


@pytest.mark.parametrize("schema", ["[]", "1", "{}", '{"aws_instance": {"attributes": {}}}'])
def test_json_that_is_no_schema_is_refused_in_one_line(schema: str) -> None:
    with pytest.raises(ValueError, match=r"^resource schema is JSON but no schema: [^\n]+$"):
        check_module({"main.tf": b""}, schema)


@pytest.mark.parametrize("schema", [None, "", "  \n"])
def test_without_a_schema(schema: str | None) -> None:
    findings = check_module({"main.tf": b'resource "aws_instance" "a" {\n  anything = 1\n}\n'}, schema)
    assert (findings.fidelity, findings.diagnostics) == ("static", ())


@pytest.mark.parametrize(
    "broken", [{"block": {"attributes": 3, "block_types": []}}, {"block": {"block_types": {"x": 1}}}]
)
def test_schemas_of_odd_shape_are_taken_as_far_as_they_go(broken: object) -> None:
    found("x {}", {"aws_instance": broken})


ESCAPED: list[tuple[str, list[str]]] = [
    ("_ {\n  ami = 1\n  disk {\n    size = 1\n  }\n}", []),
    (f"{COMPLETE}_ {{\n}}", []),
    (f"{COMPLETE}colour = 1\n_ {{\n}}", ["Unsupported argument"]),
    (f"{COMPLETE}_ {{\n  colour = 1\n}}", ["Unsupported argument"]),
    (f"{COMPLETE}_ {{\n  count = 1\n}}", ["Unsupported argument"]),
    (f"{COMPLETE}_ {{\n  lifecycle {{\n  }}\n}}", ["Unsupported block type"]),
    (f"{COMPLETE}_ {{\n  instance_type = var.no\n}}", ["Reference to undeclared input variable"]),
    ("_ {\n  ami = 1\n}", ["Insufficient disk blocks"]),
    (f'{COMPLETE}_ "x" {{\n}}', ["Extraneous label for _"]),
]


@pytest.mark.parametrize(("body", "summaries"), ESCAPED, ids=[body.replace("\n", " ") for body, _ in ESCAPED])
def test_the_content_of_an_escaping_block_belongs_to_the_resource(body: str, summaries: list[str]) -> None:
    assert [error.summary for error in found(body)] == summaries
