output "queue_url" {
  value = forge_queue.work.url
}

output "dead_letter_url" {
  value = one(forge_queue.dead[*].url)
}
