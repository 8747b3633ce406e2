locals {
  ports = { http = 80, https = 443 }
}

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

  healthcheck {
    path             = "/ready"
    interval_seconds = 15
  }
}

resource "forge_balancer_target" "group" {
  for_each = toset(var.group_ids)

  balancer_id = forge_balancer.front.id
  group_id    = each.value
}
