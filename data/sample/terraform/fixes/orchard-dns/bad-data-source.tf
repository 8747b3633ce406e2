output "name_servers" {
  description = "To be entered at the registrar."
  value       = data.forge_zone.primary.name_servers
}
