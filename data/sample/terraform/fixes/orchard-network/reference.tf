resource "forge_network" "main" {
  name        = "${var.name}-network"
  cidr        = var.cidr
  dns_support = true
  labels      = local.labels
}
