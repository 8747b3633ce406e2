resource "forge_certificate" "site" {
  domain            = var.domain
  alternative_names = var.hostnames
  validation_method = "dns"

  lifecycle {
    create_before_destroy = true
  }
}
