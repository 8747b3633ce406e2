resource "forge_job" "cleanup" {
  name        = "${var.name}-cleanup"
  schedule    = var.cleanup_schedule
  command     = ["cleanup", "--older-than", "${var.keep_days}d"]
  environment = { BUCKET = var.bucket }
}
