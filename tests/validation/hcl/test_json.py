"""Files in JSON syntax: what they refer to must be declared, as in native syntax."""

import json
from pathlib import Path

import pytest

from touchstone.validation.hcl import check_module
from touchstone.validation.judging.verdicts import compute_verdict
from touchstone.validation.protocol import Problem, Report

NATIVE = 'variable "q" {}\n'


def check(content: object, schema: str | None = None, **more: str) -> Report:
    files = {"main.tf": NATIVE, "new.tf.json": json.dumps(content), **more}
    return check_module({path: text.encode() for path, text in files.items()}, schema)


def output(value: object) -> dict[str, object]:
    return {"output": {"z": {"value": value}}}


def resource(content: object, kind: str = "x_y") -> dict[str, object]:
    return {"resource": {kind: {"z": content}}}


CONDITION = {"condition": "${var.nope}", "error_message": "x"}


WRONG: dict[str, tuple[object, str]] = {
    "variable": (output("${var.nope}"), "Reference to undeclared input variable"),
    "in a list of an object": (output({"a": ["x ${var.nope}"]}), "Reference to undeclared input variable"),
    "in a key": (output({"${var.nope}": 1}), "Reference to undeclared input variable"),
    "in a condition": (output("%{ if var.nope }x%{ endif }"), "Reference to undeclared input variable"),
    "local value": ({"locals": {"a": "${local.nope}"}}, "Reference to undeclared local value"),
    "in a list of blocks": ({"locals": [{"a": 1}, {"b": "${local.nope}"}]}, "Reference to undeclared local value"),
    "resource": (output("${aws_vpc.nope.id}"), "Reference to undeclared resource"),
    "data source": ({"provider": {"aws": {"region": "${data.a_b.c.d}"}}}, "Reference to undeclared resource"),
    "module": (resource({"source": "${module.nope.a}"}), "Reference to undeclared module"),
    "of a module call": ({"module": {"m": {"source": "a/b/c", "x": "${var.nope}"}}}, "Reference to undeclared input"),
    "in a check": ({"check": {"c": {"assert": CONDITION}}}, "Reference to undeclared input variable"),
    "in a precondition": (
        resource({"lifecycle": [{"precondition": CONDITION}]}),
        "Reference to undeclared input variable",
    ),
    "in a precondition of an output": (
        {"output": {"z": {"value": 1, "precondition": CONDITION}}},
        "Reference to undeclared input variable",
    ),
    "function": (output("${nosuch(1)}"), "Call to unknown function"),
    "template": (output("${1 +}"), "Invalid expression"),
    "unknown block": ({"nonsense": {"a": {}}}, "Extraneous JSON object property"),
    "unknown argument": ({"variable": {"a": {"typ": "string"}}}, "Extraneous JSON object property"),
    "missing value": ({"output": {"z": {}}}, "Missing required argument"),
    "missing source": ({"module": {"m": {}}}, "Missing required argument"),
    "declared in native syntax too": ({"variable": {"q": {}}}, "Duplicate variable declaration"),
    "count": (resource({"count": "x"}, "terraform_data"), "Incorrect value type"),
    "for_each": (resource({"for_each": ["a"]}, "terraform_data"), "Invalid for_each argument"),
    "count and for_each": (
        resource({"count": 1, "for_each": {}}, "terraform_data"),
        'Invalid combination of "count" and "for_each"',
    ),
    "unknown argument of a resource": (resource({"inputs": 1}, "terraform_data"), "Extraneous JSON object property"),
    "provisioner": (
        resource({"provisioner": {"local-exec": {"command": "x", "commands": "y"}}}),
        "Extraneous JSON object property",
    ),
    "in depends_on": (resource({"depends_on": ["a_b.c"]}), "Reference to undeclared resource"),
    "depends_on": (resource({"depends_on": "x_y.z"}), "Invalid expression"),
    "lifecycle": (resource({"lifecycle": {"prevent_destroy": "maybe"}}), "Unsuitable value type"),
    "type": ({"variable": {"a": {"type": "list(numbr)"}}}, "Invalid type specification"),
    "default": ({"variable": {"a": {"type": "list(number)", "default": ["a"]}}}, "Invalid default value for variable"),
    "condition": ({"variable": {"a": {"validation": CONDITION | {"condition": "${var.q}"}}}}, "Invalid"),
    "argument of a function": (output("${upper([])}"), "Invalid function argument"),
    "operand": (output('${"a" + 1}'), "Invalid operand"),
    "source of a provider": (
        {"terraform": {"required_providers": {"a": {"source": "a/b/c/d"}}}},
        "Invalid provider source string",
    ),
    "check without assertions": ({"check": {"c": {}}}, "Zero assert blocks"),
    "count in what has none": (output("${count.index}"), 'Reference to "count" in non-counted context'),
    "nested too deep": (output(json.loads("[" * 400 + "]" * 400)), "Nesting too deep"),
    "no object": ({"output": {"z": "x"}}, "Incorrect JSON value type"),
    "declared twice": ({"locals": [{"a": 1}, {"a": 2}]}, "Duplicate local value definition"),
}


@pytest.mark.parametrize("what", WRONG)
def test_errors(what: str) -> None:
    content, summary = WRONG[what]
    (found,) = check(content).diagnostics
    assert found.summary.startswith(summary)
    assert (found.file, found.line) == ("new.tf.json", None)


@pytest.mark.parametrize(
    "content",
    [
        output("${var.q} $${var.nope} %%{ if var.nope }"),
        output({"a": [1, None, "x"], "b": '${lookup(var.q, "k")}\nsecond line'}),
        {"locals": {"a": "${local.b}", "b": "${var.q}"}},
        {"variable": {"a": {"default": "$${var.nope}"}, "b": {"default": ["${var.nope}"]}}},
        {"//": "${var.nope}", "output": {"z": {"//": "${var.nope}", "value": 1}}},
        {"variable": {"a": {"type": "map(string)", "validation": {"condition": "${var.a}", "error_message": "x"}}}},
        resource(
            {
                "for_each": "${toset(var.q)}",
                "a": "${each.value}",
                "dynamic": {
                    "setting": {"for_each": "${var.q}", "content": {"b": "${setting.value}"}},
                    "other": [{"for_each": [1], "iterator": "it", "content": {"b": "${it.value}"}}],
                },
                "provisioner": [{"local-exec": {"command": "echo ${self.id}"}}],
                "rule": [{"dynamic": {"part": {"for_each": [1], "content": {"c": "${part.value}"}}}}],
                "lifecycle": {"ignore_changes": ["${all}"]},
            }
        ),
        resource({"input": {"dynamic": {"x": 1}}, "triggers_replace": '"\\ ${var.q}\n"'}, "terraform_data"),
        {"provider": {"a": [{"alias": "x"}, {"alias": "y"}]}},
        {"module": {"m": {"source": "a/b/c", "providers": {"aws": "aws.x"}}}},
        {"terraform": {"required_providers": {"aws": {"source": "hashicorp/aws"}}}},
        [{"locals": {"a": 1}}, {"output": {"z": {"value": "${local.a}"}}}],
    ],
)
def test_valid_files(content: object) -> None:
    assert check(content).diagnostics == ()


def test_what_an_override_file_declares_again_is_merged() -> None:
    assert check({}, None, **{"override.tf.json": '{"variable": {"q": {"default": 1}}}'}).diagnostics == ()


BROKEN = 'output "x" {\n  value = var.missing\n}\n'
SCHEMA = json.dumps({"x_y": {"block": {"attributes": {"a": {"type": "string", "optional": True}}}}})
ADDED = {
    "an undeclared variable": {"new.tf.json": json.dumps(output("${var.nope}"))},
    "nonsense": {"new.tf.json": '{"nonsense": {"a": 1}}'},
    "a resource beside its schema": {"new.tf.json": '{"resource": {"x_y": {"z": {"nonsense": 1}}}}'},
    "a file that only OpenTofu reads": {"new.tofu": 'variable "more" {}\n'},
}


@pytest.mark.parametrize("what", ADDED)
def test_a_fix_that_repairs_the_error_and_adds(what: str) -> None:
    def report(files: dict[str, str]) -> Report:
        return check_module({path: text.encode() for path, text in files.items()}, SCHEMA)

    problem = Problem("a", "main.tf", Path("clones"))
    before, repaired = report({"main.tf": NATIVE + BROKEN}), {"main.tf": NATIVE + BROKEN.replace("missing", "q")}
    assert compute_verdict(before, report(repaired), problem, 1, 9).status == "passed"
    assert compute_verdict(before, report({**repaired, **ADDED[what]}), problem, 1, 9).status == "failed"
