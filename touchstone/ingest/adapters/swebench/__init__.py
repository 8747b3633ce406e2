"""What SWE-bench's harness and its users write: run reports, logs of instances, submissions and predictions.

Belongs here: one module per kind of file, and what they share in `statuses`. Outputs of agents that are graded by
the harness (OpenHands, SWE-agent) do not.
"""
