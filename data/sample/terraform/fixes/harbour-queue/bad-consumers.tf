resource "forge_queue_policy" "work" {
  queue_id = forge_queue.work.id

  policy = jsonencode({
    version = 1
    allow   = [for consumer in var.consumers : { principal = consumer, actions = ["receive"] }]
  })
}
