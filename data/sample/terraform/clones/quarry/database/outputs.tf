output "endpoint" {
  value = forge_database.main.endpoint
}
