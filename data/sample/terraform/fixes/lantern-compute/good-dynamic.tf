resource "forge_instance_group" "workers" {
  name       = "${var.name}-workers"
  image_id   = data.forge_image.base.id
  size       = var.size
  subnet_ids = var.subnet_ids
  min_count  = 1
  max_count  = var.max_count

  dynamic "disk" {
    for_each = [40, var.scratch_gb]

    content {
      size_gb = disk.value
    }
  }

  lifecycle {
    create_before_destroy = true
    ignore_changes        = [min_count]
  }
}
