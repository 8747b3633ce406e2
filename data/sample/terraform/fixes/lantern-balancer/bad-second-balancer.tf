resource "forge_balancer" "front" {
  name       = var.name
  subnet_ids = var.subnet_ids

  listener {
    port     = local.ports["https"]
    protocol = "tls"
  }

  health_check {
    path = "/ready"
  }
}

resource "forge_balancer" "front" {
  name       = "${var.name}-plain"
  subnet_ids = var.subnet_ids

  listener {
    port     = local.ports["http"]
    protocol = "redirect"
  }
}
