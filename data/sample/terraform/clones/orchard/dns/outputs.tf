output "zone_id" {
  value = forge_zone.primary.id
}

output "name_servers" {
  description = "To be entered at the registrar."
  value       = forge_zone.main.name_servers
}

output "names" {
  value = concat(
    [forge_record.apex.fqdn],
    [for record in forge_record.alias : record.fqdn],
  )
}
