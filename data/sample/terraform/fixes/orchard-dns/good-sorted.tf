output "name_servers" {
  description = "To be entered at the registrar."
  value       = sort([for server in forge_zone.primary.name_servers : lower(server)])
}
