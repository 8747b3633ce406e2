resource "forge_budget" "team" {
  name          = "${var.team}-monthly"
  monthly_limit = var.limit
  currency      = "EUR"

  filter {
    key    = "team"
    values = [var.team]
  }

  notification {
    threshold_percent = 50
    recipients        = [var.owner]
  }

  notification {
    threshold_percent = 90
    recipients        = local.recipients
  }
}
