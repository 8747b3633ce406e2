variable "a" {
  type    = map(object({ x = optional(string, "y") }))
  default = {}
}
locals { b = { for k, v in var.a : k => "${v.x}-%{ if true }t%{ endif }" } }
resource "x_y" "z" {
  for_each = local.b
  n        = [1, 2.5, -3][0] + length(local.b)
  text     = <<-EOT
    ${each.key}
  EOT
  dynamic "d" {
    for_each = var.a
    content { v = d.value }
  }
  lifecycle { precondition {
    condition     = true
    error_message = "no"
  } }
}
output "o" { value = x_y.z[*].id }
