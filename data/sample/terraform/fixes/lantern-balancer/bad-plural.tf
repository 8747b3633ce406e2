resource "forge_balancer" "front" {
  name       = var.name
  subnet_ids = var.subnet_ids
  internal   = false

  listener {
    port        = local.ports["https"]
    protocol    = "tls"
    target_port = var.target_port
  }

  listener {
    port     = local.ports["http"]
    protocol = "redirect"
  }

  health_checks {
    path             = "/ready"
    interval_seconds = 15
  }
}
