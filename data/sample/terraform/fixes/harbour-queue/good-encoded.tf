resource "forge_queue_policy" "work" {
  queue_id = forge_queue.work.id

  policy = jsonencode({
    version = 1
    allow = concat(
      [for reader in var.readers : { principal = reader, actions = ["receive", "delete"] }],
      [{ principal = var.owner, actions = ["*"] }],
    )
  })
}
