resource "forge_certificate" "site" {
  domain            = var.domain
  alternative_names = [for name in var.names : format("%s.%s", name, var.domain)]
  validation_method = "dns"

  lifecycle {
    create_before_destroy = true
  }
}
