locals {
  name = join("-", compact([var.project, var.purpose, var.suffix]))
}

resource "forge_key" "bucket" {
  alias         = "${local.name}-key"
  rotation_days = 90
}

resource "forge_bucket" "this" {
  name              = local.name
  region            = var.region
  versioned         = var.keep_versions
  encryption_key_id = forge_key.bucket.id

  dynamic "lifecycle_rule" {
    for_each = var.expiry

    content {
      prefix      = lifecycle_rule.key
      expire_days = lifecycle_rule.value
    }
  }

  lifecycle {
    prevent_destroy = true
  }
}
