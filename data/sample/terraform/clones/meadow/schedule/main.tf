resource "forge_job" "report" {
  name            = "${var.name}-report"
  schedule        = "0 6 * * 1-5"
  command         = ["report", "--since", "yesterday"]
  timeout_seconds = 600
  environment = {
    BUCKET = var.bucket
    FORMAT = "csv"
  }
}

resource "forge_job" "cleanup" {
  name     = "${var.name}-cleanup"
  schedule = var.cleanup_schedule
  command  = ["cleanup", "--older-than", "${var.keep_days}d"]

  retry {
    attempts      = 3
    delay_seconds = 120

  environment = {
    BUCKET = var.bucket
  }
}

output "job_ids" {
  value = [forge_job.report.id, forge_job.cleanup.id]
}
