locals {
  recipients = distinct(concat([var.owner], var.watchers))
}

resource "forge_budget" "team" {
  name          = "${var.team}-monthly"
  monthly_limit = var.limit
  currency      = "EUR"

  filter {
    key    = "team"
    values = [var.team]
  }
}

resource "forge_alarm" "spike" {
  name       = "${var.team}-spike"
  metric     = "cost.daily"
  threshold  = var.limit / 10
  recipients = local.recipients
}
