"""Ten ordinary modules with excerpts of their providers' schemas, and right and wrong repairs of them.

Each module has one error, `value = var.nobody` in its last output. A repair gives that output a value and, beside it,
replaces one text in the module by another. What is right or wrong was decided by Terraform's documentation and source.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_OUTPUT = 'output "last" {\n  value = var.nobody\n}\n'


@dataclass(frozen=True)
class Module:
    """A module with its error, and texts of it without that error: repaired rightly, and with something else wrong."""

    text: str
    schema: str
    right: tuple[str, ...]
    wrong: tuple[str, ...]


def block(attributes: str, **blocks: Any) -> dict[str, Any]:
    """The schema of a block, with attributes as `name:type`, the type in JSON where it is no word.

    After the name, `!` means required, `?` optional, `=` computed and `*` sensitive; nothing means optional.
    """
    made = {}
    for word in attributes.split():
        name, _, kind = word.partition(":")
        bare = name.rstrip("!?=*")
        flags = {"!": "required", "?": "optional", "=": "computed", "*": "sensitive"}
        entry: dict[str, Any] = {flags[mark]: True for mark in name[len(bare) :]} or {"optional": True}
        made[bare] = {"type": json.loads(kind) if kind.startswith("[") else kind or "string", **entry}
    return {"block": {"attributes": made, "block_types": blocks}}


def nested(attributes: str, mode: str = "list", least: int = 0, most: int = 0, **blocks: Any) -> dict[str, Any]:
    """The schema of a nested block."""
    return {"nesting_mode": mode, "min_items": least, "max_items": most, **block(attributes, **blocks)}


_STRINGS, _LABELS = '["list","string"]', '["map","string"]'
_SET = '["set","string"]'
_PORTS = block(f"port!:number hosts:{_STRINGS}")["block"]
_POLICY = {"nested_type": {"nesting_mode": "list", **_PORTS}, "optional": True}

TYPES: dict[str, Any] = {
    "aws_vpc": block(f"cidr_block enable_dns_support:bool tags:{_LABELS} id= arn="),
    "aws_subnet": block(
        f"vpc_id! cidr_block availability_zone map_public_ip_on_launch:bool tags:{_LABELS} id=",
        timeouts=nested("create delete", "single"),
    ),
    "aws_instance": block(
        f"ami! instance_type! subnet_id user_data vpc_security_group_ids:{_SET} monitoring:bool tags:{_LABELS} "
        "cpu_core_count:number id= public_ip=",
        root_block_device=nested("volume_size:number volume_type encrypted:bool", most=1),
        ebs_block_device=nested("device_name! volume_size:number", "set"),
    ),
    "aws_security_group": block(
        f"name description vpc_id tags:{_LABELS} id= "
        'ingress:["set",["object",{"from_port":"number","to_port":"number","protocol":"string"}]]'
    ),
    "aws_s3_bucket": block(f"bucket force_destroy:bool tags:{_LABELS} id= arn="),
    "aws_s3_bucket_lifecycle_configuration": block(
        "bucket! id=",
        rule=nested(
            "id! status!",
            least=1,
            expiration=nested("days:number", most=1),
            transition=nested("days:number storage_class!", "set"),
        ),
    ),
    "aws_iam_role": block(f"name assume_role_policy! max_session_duration:number tags:{_LABELS} id= arn="),
    "aws_lambda_function": block(
        f"function_name! role! handler runtime filename timeout:number memory_size:number layers:{_STRINGS} "
        f"tags:{_LABELS} id= arn=",
        environment=nested(f"variables:{_LABELS}", most=1),
        vpc_config=nested(f"subnet_ids!:{_SET} security_group_ids!:{_SET}", most=1),
    ),
    "google_compute_instance": block(
        f"name! machine_type! zone tags:{_SET} labels:{_LABELS} metadata:{_LABELS} can_ip_forward:bool id=",
        boot_disk=nested("auto_delete:bool", least=1, most=1, initialize_params=nested("image size:number", most=1)),
        network_interface=nested("network subnetwork", least=1, access_config=nested("nat_ip")),
    ),
    "google_storage_bucket": block(
        f"name! location! force_destroy:bool labels:{_LABELS} id= url=",
        versioning=nested("enabled!:bool", most=1),
        lifecycle_rule=nested(
            "",
            action=nested("type! storage_class", "set", 1, 1),
            condition=nested(f"age:number matches_prefix:{_STRINGS}", "set", 1, 1),
        ),
    ),
    "azurerm_resource_group": block(f"name! location! tags:{_LABELS} id="),
    "azurerm_virtual_network": block(
        f"name! location! resource_group_name! address_space!:{_STRINGS} dns_servers:{_STRINGS} tags:{_LABELS} id="
    ),
    "azurerm_storage_account": block(
        "name! location! resource_group_name! account_tier! account_replication_type! is_hns_enabled:bool "
        f"tags:{_LABELS} id= primary_access_key=*",
        network_rules=nested(f"default_action! ip_rules:{_SET} bypass:{_SET}", most=1),
    ),
    "random_password": block("length!:number special:bool min_upper:number keepers:" + _LABELS + " id= result=*"),
    "random_pet": block("length:number prefix separator keepers:" + _LABELS + " id="),
    "null_resource": block(f"triggers:{_LABELS} id="),
}
TYPES["azurerm_virtual_network"]["block"]["attributes"]["policy"] = _POLICY
DATA = {"aws_ami": block(f"owners:{_STRINGS} most_recent:bool id=", filter=nested(f"name! values!:{_SET}", "set"))}


def _module(text: str, right: str, wrong: str) -> Module:
    used = [name for name in (*TYPES, *DATA) if f'"{name}"' in text]
    schema = {
        "resource_schemas": {name: TYPES[name] for name in used if name in TYPES},
        "data_source_schemas": {name: DATA[name] for name in used if name in DATA},
    }
    broken = text + _OUTPUT
    fixed = broken.replace("value = var.nobody", "value = 1")
    return Module(broken, json.dumps(schema), (fixed, *_repaired(fixed, right)), tuple(_repaired(fixed, wrong)))


def _repaired(text: str, table: str) -> Iterator[str]:
    for line in filter(None, (line.strip().replace("\\n", "\n") for line in table.splitlines())):
        old, found, values = line.partition(" := ")
        if found:
            argument = re.search(rf"^ *{old} *= (.*)$", text, re.MULTILINE)
            assert argument, line
            yield from (text[: argument.start(1)] + new + text[argument.end(1) :] for new in values.split(" ;; "))
        else:
            old, _, values = line.partition(" => ")
            assert old in text, line
            yield from (text.replace(old, new, 1) for new in values.split(" ;; "))


def _read_modules() -> Iterator[tuple[str, Module]]:
    for part in Path(__file__).with_suffix(".txt").read_text().split("\n==== ")[1:]:
        name, _, texts = part.partition("\n")
        yield name, _module(*re.split(r"^---- (?:right|wrong)\n", texts, flags=re.MULTILINE))


MODULES = dict(_read_modules())
