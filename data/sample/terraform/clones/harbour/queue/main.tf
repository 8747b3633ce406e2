resource "forge_queue" "work" {
  name              = var.name
  retention_seconds = 4 * 24 * 3600
  labels            = { owner = var.owner }
}

resource "forge_queue" "dead" {
  count = var.keep_dead_letters ? 1 : 0

  name              = "${var.name}-dead"
  retention_seconds = 14 * 24 * 3600
}

resource "forge_queue_policy" "work" {
  queue_id = forge_queue.work.id

  policy = <<-POLICY
    {
      "version": 1,
      "allow": [
        %{for reader in var.readers~}
        {"principal": "${reader}", "actions": ["receive", "delete"]},
        {"principal": "${var.owner}", "actions": ["*"]}
      ]
    }
  POLICY
}
