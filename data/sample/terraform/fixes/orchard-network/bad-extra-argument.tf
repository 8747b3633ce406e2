resource "forge_network" "main" {
  name        = "${var.name}-network"
  cidr        = var.cidr
  dns_support = true
  enable_ipv6 = false
  labels      = local.labels
}
