output "network_id" {
  value = forge_network.main.id
}

output "subnet_ids" {
  description = "Id of the subnet of each zone."
  value       = { for zone, subnet in forge_subnet.zone : zone => subnet.id }
}
