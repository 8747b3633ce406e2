resource "forge_certificate" "site" {
  domain            = var.domain
  alternative_names = local.hostnames
  validation_method = "dns"

  renewal {
    days_before = 30
  }

  lifecycle {
    create_before_destroy = true
  }
}
