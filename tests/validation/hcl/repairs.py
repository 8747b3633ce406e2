"""Ten ordinary modules with excerpts of their providers' schemas, and right and wrong repairs of them.

Each module has one error, `value = var.nobody` in its last output. A repair gives that output a value and, beside it,
replaces one text in the module by another. What is right or wrong was decided by Terraform's documentation and source.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
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
    """Repairs are lines `old => new`, with `\\n` for a line's end, or `argument := new`, which gives the first argument
    of that name another value. Several new texts are separated by ` ;; `; without any, the old one is deleted."""
    used = [name for name in (*TYPES, *DATA) if f'"{name}"' in text]
    schema = {
        "resource_schemas": {name: TYPES[name] for name in used if name in TYPES},
        "data_source_schemas": {name: DATA[name] for name in used if name in DATA},
    }
    broken = text.lstrip() + _OUTPUT
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


MODULES = {
    "aws network": _module(
        """
variable "cidr" { type = string }
variable "zones" { type = list(string) }
variable "names" { type = map(object({ cidr = string, public = optional(bool) })) }
locals {
  tags = { team = "net" }
  count = length(var.zones)
}
resource "aws_vpc" "main" {
  cidr_block         = var.cidr
  enable_dns_support = true
  tags               = merge(local.tags, { Name = "main" })
}
resource "aws_subnet" "zone" {
  count             = local.count
  vpc_id            = aws_vpc.main.id
  cidr_block        = cidrsubnet(var.cidr, 4, count.index)
  availability_zone = element(var.zones, count.index)
}
resource "aws_subnet" "named" {
  for_each                = var.names
  vpc_id                  = aws_vpc.main.id
  cidr_block              = each.value.cidr
  map_public_ip_on_launch = each.value.public
}
output "ids" {
  value = join(",", aws_subnet.zone[*].id)
}
""",
        right="""
enable_dns_support := "true" ;; null
local.count => "2" ;; var.cidr == "" ? 0 : 1
for_each := { for name, it in var.names : name => it if it.public }
for_each := tomap({ a = { cidr = "10.0.0.0/24", public = true } })
merge(local.tags, { Name = "main" }) => { Name = 1, Old = true }
availability_zone := var.zones[count.index]
""",
        wrong="""
enable_dns_support := "yes" ;; 1 ;; [true]
local.count => "x" ;; var.zones ;; true ;; -1
for_each := var.zones ;; 3 ;; "a" ;; ["a", "b"]
merge(local.tags, { Name = "main" }) => merge(local.tags, "main") ;; "main" ;; ["main"] ;; { Name = ["main"] }
cidrsubnet(var.cidr, 4, count.index) => cidrsubnet(4, var.cidr, count.index, 1)
cidrsubnet(var.cidr, 4, count.index) => cidrsubnet(var.cidr, "four", count.index)
cidrsubnet(var.cidr, 4, count.index) => cidrsubnet(var.zones, 4, count.index)
availability_zone := element(var.cidr, count.index) ;; var.zones
value := join(var.zones, ",") ;; join(",", var.cidr)
each.value.cidr => var.names["a"].block
count := length(3)
var.cidr\\n  enable => var.cidr.block\\n  enable
""",
    ),
    "aws instance": _module(
        """
variable "size" { type = number }
variable "disks" { type = list(object({ name = string, size = number })) }
variable "ports" { type = set(number) }
data "aws_ami" "linux" {
  owners      = ["amazon"]
  most_recent = true
  filter {
    name   = "name"
    values = ["al2023-*"]
  }
}
resource "aws_security_group" "web" {
  name = "web"
  dynamic "ingress" {
    for_each = var.ports
    content {
      from_port = ingress.value
      to_port   = ingress.value
      protocol  = "tcp"
    }
  }
}
resource "aws_instance" "web" {
  ami                    = data.aws_ami.linux.id
  instance_type          = "t3.micro"
  vpc_security_group_ids = [aws_security_group.web.id]
  monitoring             = false
  root_block_device {
    volume_size = var.size
    encrypted   = true
  }
  dynamic "ebs_block_device" {
    for_each = var.disks
    iterator = disk
    content {
      device_name = disk.value.name
      volume_size = disk.value.size
    }
  }
  lifecycle {
    ignore_changes = [ami, tags]
  }
}
output "ip" {
  value = "http://${aws_instance.web.public_ip}"
}
""",
        right="""
volume_size := "30" ;; var.size * 2
ignore_changes := all ;; [root_block_device[0].volume_size, tags["Name"]]
var.disks => { for disk in var.disks : disk.name => disk } ;; [for disk in var.disks : disk if disk.size > 10]
values := toset(["al2023-*"])
vpc_security_group_ids := aws_security_group.web[*].id
""",
        wrong="""
volume_size := "large" ;; [var.size] ;; var.disks ;; "${var.disks}" ;; "${var.size}GB-${var.disks}"
ignore_changes := [amy] ;; "ami" ;; [var.size]
vpc_security_group_ids := "sg-1" ;; { a = 1 }
owners := "amazon" ;; [["amazon"]]
most_recent := "latest"
values := "al2023-*"
var.disks => 1 ;; "disks"
for_each = var.disks\\n    iterator => iterator
content {\\n      device_name = disk.value.name\\n      volume_size = disk.value.size\\n    } => device_name = "a"
device_name = disk.value.name => name = disk.value.name
iterator := "disk"
monitoring := aws_instance.web.id == ""
value := "http://${var.disks}" ;; upper(["a"])
ami := null
""",
    ),
    "aws bucket": _module(
        """
variable "days" { type = number }
variable "name" { type = string }
resource "aws_s3_bucket" "logs" {
  bucket        = lower(var.name)
  force_destroy = true
}
resource "aws_s3_bucket_lifecycle_configuration" "logs" {
  bucket = aws_s3_bucket.logs.id
  rule {
    id     = "expire"
    status = "Enabled"
    expiration {
      days = var.days
    }
    transition {
      days          = floor(var.days / 2)
      storage_class = "GLACIER"
    }
  }
}
output "url" {
  value = format("https://%s.s3.amazonaws.com", aws_s3_bucket.logs.id)
}
""",
        right="""
days := max(var.days, 7)
bucket := "${lower(var.name)}-${var.days}" ;; substr(lower(replace(var.name, "_", "-")), 0, 63)
floor(var.days / 2) => var.days > 60 ? 30 : "7"
""",
        wrong="""
days := "thirty" ;; { after = 30 } ;; var.days + "a" ;; !var.days ;; max(var.name, [1])
bucket := lower([var.name]) ;; lower({ name = var.name }) ;; replace(var.name, "_") ;; substr(var.name, "a", 3)
bucket := split("-", var.name)
force_destroy := "sure"
floor(var.days / 2) => floor("half") ;; floor(var.days / "two") ;; var.days > 60 ? 30 : [7]
value := format(["a"], var.name) ;; "${[var.name]}-x"
""",
    ),
    "aws lambda": _module(
        """
variable "environment" { type = map(string) }
variable "token" {
  type      = string
  sensitive = true
}
locals {
  name = "worker"
  timeouts = { short = 3, long = 60 }
}
resource "aws_iam_role" "worker" {
  name = local.name
  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Action = "sts:AssumeRole", Effect = "Allow", Principal = { Service = "lambda.amazonaws.com" } }]
  })
}
resource "aws_lambda_function" "worker" {
  function_name = local.name
  role          = aws_iam_role.worker.arn
  timeout       = local.timeouts["short"]
  layers        = ["arn:one"]
  environment {
    variables = merge(var.environment, { TOKEN = var.token })
  }
}
output "arn" {
  value = aws_lambda_function.worker.arn
}
output "token" {
  value     = var.token
  sensitive = true
}
""",
        right="""
timeout := local.timeouts.long ;; lookup(local.timeouts, "short", 5) ;; try(local.timeouts.none, 5)
variables := { for key, value in var.environment : upper(key) => value }
value     = var.token\\n  sensitive = true => value     = nonsensitive(var.token)
value     = var.token\\n  sensitive = true => value     = length(var.environment)
layers := concat(["arn:one"], tolist(["arn:two"]))
""",
        wrong="""
timeout := local.timeouts ;; local.timeouts.none ;; local.name ;; local.name["short"]
variables := [var.token] ;; jsonencode(var.environment) ;; merge(var.environment, ["TOKEN"])
value     = var.token\\n  sensitive = true => value     = var.token ;; value     = "Bearer ${var.token}"
value     = var.token\\n  sensitive = true => value     = { token = var.token } ;; value     = upper(var.token)
layers := "arn:one" ;; concat("arn:one", ["arn:two"]) ;; { one = "arn:one" }
role := [aws_iam_role.worker.arn] ;; aws_lambda_function.worker.role
""",
    ),
    "google instance": _module(
        """
variable "zone" { type = string }
variable "labels" { type = map(string) }
resource "google_compute_instance" "vm" {
  name         = "vm"
  machine_type = "e2-small"
  zone         = var.zone
  tags         = ["web", "ssh"]
  labels       = var.labels
  boot_disk {
    initialize_params {
      image = "debian-cloud/debian-12"
      size  = 20
    }
  }
  network_interface {
    network = "default"
    access_config {}
  }
}
output "region" {
  value = join("-", slice(split("-", var.zone), 0, 2))
}
""",
        right="""
size := tonumber("20")
tags := distinct(concat(["web"], keys(var.labels))) ;; []
labels := { for key, value in var.labels : lower(key) => value if value != "" }
value := regex("^[a-z]+-[a-z0-9]+", var.zone)
""",
        wrong="""
size := "20GB" ;; tonumber("twenty")
tags := "web" ;; { web = true } ;; keys(["web"])
labels := keys(var.labels) ;; [var.labels] ;; { app = { name = "x" } } ;; 5
slice(split("-", var.zone), 0, 2) => var.zone
split("-", var.zone) => split("-", var.labels)
network := ["default"]
""",
    ),
    "google bucket": _module(
        """
variable "ages" { type = map(number) }
resource "google_storage_bucket" "data" {
  name     = "data"
  location = "EU"
  versioning {
    enabled = true
  }
  dynamic "lifecycle_rule" {
    for_each = var.ages
    content {
      action {
        type = "Delete"
      }
      condition {
        age = lifecycle_rule.value
      }
    }
  }
}
output "oldest" {
  value = max(values(var.ages)...)
}
""",
        right="""
age := tonumber(lifecycle_rule.value)
for_each := [30, 60]
value := try(max(values(var.ages)...), 0)
value := google_storage_bucket.data.versioning[0].enabled ;; google_storage_bucket.data.versioning[*].enabled
""",
        wrong="""
enabled := "on" ;; { value = true }
for_each := true
age := "old" ;; [lifecycle_rule.value]
value := max(var.ages) ;; sum(var.ages)
values(var.ages) => values("ages")
value := google_storage_bucket.data.versioning.enabled ;; google_storage_bucket.data.versioning[0].enable
value := google_storage_bucket.data.lifecycle_rule[0].action.type ;; google_storage_bucket.data.labels.a.b
dynamic "lifecycle_rule" { => dynamic {
""",
    ),
    "azure network": _module(
        """
variable "location" { type = string }
variable "spaces" { type = list(string) }
resource "azurerm_resource_group" "main" {
  name     = "main"
  location = var.location
}
resource "azurerm_virtual_network" "main" {
  name                = "main"
  location            = azurerm_resource_group.main.location
  resource_group_name = azurerm_resource_group.main.name
  address_space       = var.spaces
  policy              = [{ port = 443, hosts = ["a"] }]
  tags = {
    env = terraform.workspace
  }
}
output "first" {
  value = var.spaces[0]
}
""",
        right="""
address_space := toset(var.spaces)
policy := [{ port = "443" }] ;; [for it in var.spaces : { port = 1 }]
env := true
""",
        wrong="""
address_space := var.spaces[0] ;; "10.0.0.0/16" ;; { main = "10.0.0.0/16" }
policy              = [{ port = 443, hosts = ["a"] }] => policy {\\n    port = 443\\n  }
policy              = [{ port = 443, hosts = ["a"] }] => policy              = { port = 443 }
policy              = [{ port = 443, hosts = ["a"] }] => policy              = [{ hosts = ["a"] }]
policy              = [{ port = 443, hosts = ["a"] }] => policy              = [{ port = "https" }]
policy              = [{ port = 443, hosts = ["a"] }] => policy              = [{ port = 1, hosts = "a" }]
env := [terraform.workspace]
value := var.spaces["first"] ;; var.spaces.first
location := var.location[0]
""",
    ),
    "azure storage": _module(
        """
variable "allowed" { type = set(string) }
resource "azurerm_storage_account" "main" {
  name                     = "main"
  location                 = "westeurope"
  resource_group_name      = "main"
  account_tier             = "Standard"
  account_replication_type = "LRS"
  is_hns_enabled           = true
  network_rules {
    default_action = "Deny"
    ip_rules       = var.allowed
  }
}
output "key" {
  value     = azurerm_storage_account.main.primary_access_key
  sensitive = true
}
""",
        right="""
ip_rules := sort(var.allowed) ;; setunion(var.allowed, ["10.0.0.1"])
is_hns_enabled := length(var.allowed) > 0
""",
        wrong="""
ip_rules := join(",", var.allowed) ;; var.allowed["a"] ;; 1
is_hns_enabled := "enabled" ;; var.allowed
primary_access_key\\n  sensitive = true => primary_access_key
account_tier := null
""",
    ),
    "random": _module(
        """
variable "length" { type = number }
resource "random_password" "db" {
  length  = var.length
  special = true
  keepers = { version = 1 }
}
resource "random_pet" "name" {
  length    = 2
  separator = "-"
}
output "name" {
  value = title(random_pet.name.id)
}
output "password" {
  value     = random_password.db.result
  sensitive = true
}
""",
        right="""
length := var.length + 4
keepers := { version = 1, time = null }
special := var.length > 8 && true
value := title(replace(random_pet.name.id, "-", " "))
""",
        wrong="""
length := "long" ;; {} ;; null
keepers := "version" ;; [1]
special := "!@#" ;; var.length
separator := ["-"]
value := title(random_pet.name.id, 1) ;; title([])
random_password.db.result\\n  sensitive = true => random_password.db.result
2 => random_pet.name.length
""",
    ),
    "null": _module(
        """
variable "hosts" { type = list(string) }
resource "null_resource" "setup" {
  count    = length(var.hosts)
  triggers = { hosts = join(",", var.hosts) }
  connection {
    host = var.hosts[count.index]
    user = "root"
    port = 22
  }
  provisioner "local-exec" {
    command     = "echo ${self.id}"
    working_dir = path.module
    environment = { HOST = var.hosts[count.index] }
  }
  provisioner "remote-exec" {
    inline = ["apt-get update"]
  }
  provisioner "file" {
    content     = "hello"
    destination = "/tmp/hello"
  }
  lifecycle {
    create_before_destroy = true
  }
}
output "ids" {
  value = { for index, host in var.hosts : host => null_resource.setup[index].id }
}
""",
        right="""
port := "22"
command     = "echo ${self.id}" => command     = "true"\\n    interpreter = ["bash", "-c"]\\n    quiet = true
inline = ["apt-get update"] => scripts = ["a.sh"]
count := max(1, length(var.hosts))
triggers := { hosts = length(var.hosts), now = timestamp() }
""",
        wrong="""
command     = "echo ${self.id}" => commands    = "echo" ;; command     = ["echo"]
working_dir = path.module => workdir = path.module
environment := ["HOST"]
inline = ["apt-get update"] => inline = "apt-get update" ;; commands = ["apt-get update"]
inline = ["apt-get update"]
destination = "/tmp/hello" => target = "/tmp/hello"
destination = "/tmp/hello"
content     = "hello" => body = "hello"
port := "ssh"
user = "root" => username = "root"
"remote-exec" => "remote_exec"
triggers := var.hosts
join(",", var.hosts) => join(var.hosts, ",")
count := var.hosts
create_before_destroy := "maybe"
null_resource.setup[index].id } => null_resource.setup[index].id
for index, host in var.hosts => for index, host in length(var.hosts)
""",
    ),
}
