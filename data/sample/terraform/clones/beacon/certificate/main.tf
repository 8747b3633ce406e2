locals {
  hostnames = [for name in var.names : "${name}.${var.domain}"]
}

data "forge_zone" "main" {
  domain = var.domain
}

resource "forge_certificate" "site" {
  domain            = var.domain
  alternative_names = local.host_names
  validation_method = "dns"

  lifecycle {
    create_before_destroy = true
  }
}

resource "forge_record" "proof" {
  zone_id = data.forge_zone.main.id
  name    = forge_certificate.site.validation_name
  type    = "TXT"
  ttl     = 60
  values  = [forge_certificate.site.validation_value]
}
