resource "forge_budget" "team" {
  name          = "${var.team}-monthly"
  monthly_limit = var.limit
  currency      = "EUR"

  filter {
    key    = "team"
    values = [var.team]
  }

  notification {
    recipients = local.recipients
  }
}
