output "name_servers" {
  description = "To be entered at the registrar."
  value       = module.dns.name_servers
}
