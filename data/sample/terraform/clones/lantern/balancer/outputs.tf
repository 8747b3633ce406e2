output "address" {
  value = forge_balancer.front.address
}
