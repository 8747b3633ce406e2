locals {
  labels = merge(var.labels, { module = "network" })

  # One subnet per zone, each a sixteenth of the network.
  subnets = {
    for index, zone in var.zones : zone => cidrsubnet(var.cidr, 4, index)
  }
}

resource "forge_network" "main" {
  name        = "${var.name}-network"
  cidr        = var.network_cidr
  dns_support = true
  labels      = local.labels
}

resource "forge_subnet" "zone" {
  for_each = local.subnets

  network_id = forge_network.main.id
  zone       = each.key
  cidr       = each.value
  public     = contains(var.public_zones, each.key)
}
