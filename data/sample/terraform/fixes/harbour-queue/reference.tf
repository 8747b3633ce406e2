resource "forge_queue_policy" "work" {
  queue_id = forge_queue.work.id

  policy = <<-POLICY
    {
      "version": 1,
      "allow": [
        %{for reader in var.readers~}
        {"principal": "${reader}", "actions": ["receive", "delete"]},
        %{endfor~}
        {"principal": "${var.owner}", "actions": ["*"]}
      ]
    }
  POLICY
}
