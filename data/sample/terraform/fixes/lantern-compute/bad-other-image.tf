resource "forge_instance_group" "workers" {
  name       = "${var.name}-workers"
  image_id   = data.forge_image.latest.id
  size       = var.size
  subnet_ids = var.subnet_ids
  min_count  = 1
  max_count  = var.max_count

  disk {
    size_gb = 40
    kind    = "ssd"
  }

  disk {
    size_gb = var.scratch_gb
  }

  lifecycle {
    create_before_destroy = true
    ignore_changes        = [min_count]
  }
}
