"""Makes Terraform modules that need no provider: two or three files of about 2 KB together, some of them broken.

A module is a clone on disk; an attempt at it is another text of its `main.tf`. No two are the same, and every third
attempt is broken in one of the ways below. Both `hcl` and Terraform itself refuse these and accept the others.
"""

from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import NamedTuple

FILENAME = "main.tf"
BROKEN_EVERY = 3
WORDS = ("harbour", "orchard", "lantern", "quarry", "beacon", "meadow", "thicket", "larder", "granary", "foundry")
STAGES = ("dev", "test", "stage", "live")

_VARIABLES = Template("""\
variable "${word}_name" {
  description = "Name of the $word, in lower case."
  type        = string
  default     = "$word-$number"

  validation {
    condition     = length(var.${word}_name) > 2 && lower(var.${word}_name) == var.${word}_name
    error_message = "The name of the $word must have more than two letters, in lower case."
  }
}

variable "replicas" {
  description = "How many there are in each zone."
  type        = map(number)
  default     = { north = 2, south = 1 }
}

variable "labels" {
  type    = object({ team = string, stage = optional(string, "$stage") })
  default = { team = "$word-team" }
}
""")

_MAIN = Template("""\
terraform {
  required_version = ">= 1.3.0"
}

locals {
  prefix = "$${var.${word}_name}-$stage-$attempt"
  labels = merge(var.labels, { module = local.prefix })
  zones  = { for zone, count in var.replicas : zone => count if count > 0 }
}

resource "terraform_data" "${word}_zone" {
  for_each = local.zones

  input = {
    name     = "$${local.prefix}-$${each.key}"
    replicas = each.value
    labels   = local.labels
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "terraform_data" "${word}_report" {
  input            = join(",", [for zone in terraform_data.${word}_zone : zone.output.name])
  triggers_replace = [local.prefix, length(local.zones)]

  depends_on = [terraform_data.${word}_zone]
}
""")

_OUTPUTS = Template("""\
output "${word}_zones" {
  description = "Names of all zones of the $word."
  value       = sort(keys(terraform_data.${word}_zone))
}

output "${word}_report" {
  value     = terraform_data.${word}_report.output
  sensitive = $sensitive
}
""")

# What is replaced by what: an undeclared variable, local and resource, an unclosed block, a missing operand, an
# argument that does not exist, a function that does not exist, and a label too many.
_BREAKS = (
    ("merge(var.labels,", "merge(var.label,"),
    ("[local.prefix, length", "[local.prefixes, length"),
    ("depends_on = [terraform_data.", "depends_on = [terraform_data.no_"),
    ("    create_before_destroy = true\n  }\n", "    create_before_destroy = true\n"),
    ("if count > 0", "if count >"),
    ("  triggers_replace = ", "  triggers_replaced = "),
    ('join(",", ', 'joined(",", '),
    ('resource "terraform_data" ', 'resource "terraform_data" "more" '),
)


class Module(NamedTuple):
    """A module's files with a sound `main.tf`."""

    name: str
    files: dict[str, str]

    @property
    def row(self) -> dict[str, str]:
        """Its row of a problems file."""
        return {"oid": self.name, "filename": FILENAME, "working_directory": self.name, "language": "terraform"}


def make_module(number: int, attempt: int = 0) -> Module:
    """The module of that number, with the `main.tf` of that attempt."""
    given = {
        "word": f"{WORDS[number % len(WORDS)]}_{number}",
        "number": number,
        "stage": STAGES[number % len(STAGES)],
        "attempt": attempt,
        "sensitive": str(number % 2 == 0).lower(),
    }
    variables, main, outputs = (part.substitute(given) for part in (_VARIABLES, _MAIN, _OUTPUTS))
    if number % 2:
        files = {"variables.tf": variables, FILENAME: main, "outputs.tf": outputs}
    else:
        files = {"variables.tf": variables, FILENAME: f"{main}\n{outputs}"}
    return Module(f"module-{number:04}", files)


def make_attempts(number: int, count: int) -> Iterator[tuple[str, bool]]:
    """Texts of a module's `main.tf`, and whether each is sound."""
    for attempt in range(count):
        sound = make_module(number, attempt).files[FILENAME]
        broken = (number + attempt) % BROKEN_EVERY == 0
        yield (break_text(sound, (number + attempt) // BROKEN_EVERY) if broken else sound), not broken


def break_text(text: str, way: int) -> str:
    """The text with one error in it."""
    right, wrong = _BREAKS[way % len(_BREAKS)]
    assert right in text
    return text.replace(right, wrong, 1)


def write_modules(clones: Path, count: int) -> list[Module]:
    """Write modules, each broken, into a folder of its own."""
    modules = [make_module(number) for number in range(count)]
    for number, module in enumerate(modules):
        folder = clones / module.name
        folder.mkdir(parents=True)
        for name, text in module.files.items():
            (folder / name).write_text(break_text(text, number) if name == FILENAME else text, encoding="utf-8")
    return modules
