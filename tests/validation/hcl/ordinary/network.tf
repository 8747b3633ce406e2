terraform {
  required_version = ">= 1.3"
}

variable "name" {
  description = "Name of the network."
  type        = string
  default     = "core"
}

variable "cidr_block" {
  description = "Address range of the network."
  type        = string
  default     = "10.0.0.0/16"

  validation {
    condition     = can(cidrhost(var.cidr_block, 0))
    error_message = "The address range must be in CIDR notation."
  }
}

variable "zones" {
  description = "Availability zones."
  type        = list(string)
  default     = ["a", "b", "c"]
}

variable "public" {
  description = "Whether the network is reachable from outside."
  type        = bool
  default     = false
}

variable "tags" {
  description = "Tags of every resource."
  type        = map(string)
  default     = {}
}

locals {
  tags          = merge({ Name = var.name, Terraform = "true" }, var.tags)
  subnets       = { for index, zone in var.zones : zone => cidrsubnet(var.cidr_block, 8, index) }
  public_ranges = var.public ? values(local.subnets) : []
}

resource "terraform_data" "network" {
  input = {
    name = var.name
    cidr = var.cidr_block
    tags = local.tags
  }
}

resource "terraform_data" "subnet" {
  for_each = local.subnets

  input = {
    network = terraform_data.network.id
    zone    = each.key
    cidr    = each.value
    tags    = merge(local.tags, { Name = "${var.name}-${each.key}" })
  }

  lifecycle {
    create_before_destroy = true
  }
}

resource "terraform_data" "gateway" {
  count = var.public ? 1 : 0

  input            = { network = terraform_data.network.id, ranges = local.public_ranges }
  triggers_replace = [terraform_data.network.id]
  depends_on       = [terraform_data.subnet]
}

output "network_id" {
  description = "Identifier of the network."
  value       = terraform_data.network.id
}

output "subnet_ids" {
  description = "Identifiers of the subnets by zone."
  value       = { for zone, subnet in terraform_data.subnet : zone => subnet.id }
}

output "gateway_id" {
  value = one(terraform_data.gateway[*].id)
}
