resource "forge_zone" "primary" {
  domain  = var.domain
  comment = "Managed by the orchard team"
}

resource "forge_record" "apex" {
  zone_id = forge_zone.primary.id
  name    = var.domain
  type    = "A"
  ttl     = 300
  values  = var.addresses
}

resource "forge_record" "alias" {
  for_each = var.aliases

  zone_id = forge_zone.primary.id
  name    = "${each.key}.${var.domain}"
  type    = "CNAME"
  ttl     = 900
  values  = [each.value]
}
