resource "forge_network" "main" {
  name        = "${var.name}-network"
  cidr        = var.cidr_block
  dns_support = true
  labels      = local.labels
}
