resource "forge_job" "cleanup" {
  name     = "${var.name}-cleanup"
  schedule = var.cleanup_schedule
  command  = ["cleanup", "--older-than", "${var.keep_days}d"]

  retry {
    attempts      = 3
    delay_seconds = 120
  }

  environment = {
    BUCKET = var.bucket
  }
}
