resource "forge_budget" "team" {
  name          = "${var.team}-monthly"
  monthly_limit = var.limit
  currency      = "EUR"
  recipients    = local.recipients

  filter {
    key    = "team"
    values = [var.team]
  }
}
