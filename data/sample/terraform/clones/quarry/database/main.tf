resource "forge_secret" "password" {
  name   = "${var.name}-password"
  length = 24
}

resource "forge_database" "main" {
  name                = var.name
  engine              = "relational"
  engine_version      = var.engine_version
  storage_gb          = var.storage_gb
  username            = "app"
  password            = forge_secret.password.value
  deletion_protection = true

  backup {
    window    = "02:00-03:00"
    keep_days = var.backup_days
  }
}
