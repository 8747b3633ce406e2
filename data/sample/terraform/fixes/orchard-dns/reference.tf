output "name_servers" {
  description = "To be entered at the registrar."
  value       = forge_zone.primary.name_servers
}
