terraform {
  required_version = ">= 1.4, < 2.0"
}

variable "cluster_name" {
  type = string
}

variable "node_groups" {
  type = list(object({
    name = string
    min  = number
    max  = number
    spot = optional(bool, false)
  }))
  default = [
    { name = "general", min = 1, max = 3 },
    { name = "batch", min = 0, max = 10, spot = true },
  ]
}

variable "addons" {
  type    = map(string)
  default = { dns = "1.11.1", proxy = "1.29.0" }
}

variable "endpoint_public_access" {
  type    = bool
  default = true
}

variable "log_retention" {
  type    = number
  default = 90
}

locals {
  groups   = { for group in var.node_groups : group.name => group }
  capacity = sum([for group in var.node_groups : group.max])
  versions = { for name, version in var.addons : name => split(".", version) }
  major    = { for name, parts in local.versions : name => tonumber(parts[0]) }
  name     = lower(replace(var.cluster_name, "_", "-"))
  labels   = merge({ cluster = local.name }, var.endpoint_public_access ? { access = "public" } : {})
}

resource "terraform_data" "cluster" {
  input = {
    name      = local.name
    access    = var.endpoint_public_access ? "public" : "private"
    retention = var.log_retention
    labels    = local.labels
  }

  lifecycle {
    postcondition {
      condition     = length(self.id) > 0
      error_message = "The cluster has no identifier."
    }
  }
}

resource "terraform_data" "group" {
  for_each = local.groups

  input = {
    cluster = terraform_data.cluster.id
    name    = "${local.name}-${each.key}"
    size    = { min = each.value.min, max = each.value.max }
    kind    = each.value.spot ? "spot" : "on-demand"
  }
  triggers_replace = { labels = local.labels }
}

resource "terraform_data" "addon" {
  for_each = var.addons

  input      = { name = each.key, version = each.value, major = local.major[each.key] }
  depends_on = [terraform_data.group]
}

moved {
  from = terraform_data.nodes
  to   = terraform_data.group
}

output "cluster_id" {
  value       = terraform_data.cluster.id
  description = "Identifier of the cluster."
}

output "capacity" {
  value = local.capacity
}

output "group_ids" {
  value = [for group in terraform_data.group : group.id]
}

output "addon_versions" {
  value = { for name, addon in terraform_data.addon : name => addon.output.version }
}
