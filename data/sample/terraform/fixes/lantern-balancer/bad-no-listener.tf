resource "forge_balancer" "front" {
  name       = var.name
  subnet_ids = var.subnet_ids
  internal   = false

  health_check {
    path             = "/ready"
    interval_seconds = 15
  }
}
