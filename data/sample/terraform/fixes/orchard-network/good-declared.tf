variable "network_cidr" {
  description = "Address range of the network."
  type        = string
  default     = "10.20.0.0/16"
}

resource "forge_network" "main" {
  name        = "${var.name}-network"
  cidr        = var.network_cidr
  dns_support = true
  labels      = local.labels
}
