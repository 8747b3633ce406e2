output "group_id" {
  value = forge_instance_group.workers.id
}

output "image_id" {
  value = data.forge_image.base.id
}
