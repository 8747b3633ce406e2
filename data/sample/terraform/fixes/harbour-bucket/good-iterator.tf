resource "forge_bucket" "this" {
  name              = local.name
  region            = var.region
  versioning        = var.keep_versions
  encryption_key_id = forge_key.bucket.id

  dynamic "lifecycle_rule" {
    for_each = var.expiry
    iterator = rule

    content {
      prefix      = rule.key
      expire_days = rule.value
    }
  }

  lifecycle {
    prevent_destroy = true
  }
}
