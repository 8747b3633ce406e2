variable "function_name" {
  type        = string
  description = "Name of the function."

  validation {
    condition     = length(regexall("^[a-z][a-z0-9-]*$", var.function_name)) == 1
    error_message = "Lower case letters, digits and dashes only."
  }
}

variable "timeout" {
  type    = number
  default = 3
}

variable "layers" {
  type    = list(string)
  default = []
}

variable "variables" {
  type    = map(string)
  default = null
}

variable "schedule" {
  type    = object({ rate = number, unit = string })
  default = { rate = 5, unit = "minutes" }
}

locals {
  seconds    = min(var.timeout, 900)
  variables  = var.variables == null ? {} : var.variables
  expression = "rate(${var.schedule.rate} ${var.schedule.rate == 1 ? trimsuffix(var.schedule.unit, "s") : var.schedule.unit})"
  statements = [
    {
      actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
      resources = ["*"]
    },
    {
      actions   = ["s3:GetObject"]
      resources = formatlist("arn:aws:s3:::%s/*", var.layers)
    },
  ]
  policy = { Version = "2012-10-17", Statement = [for one in local.statements : one if length(one.resources) > 0] }
}

resource "terraform_data" "role" {
  input = { name = "${var.function_name}-role", policy = jsonencode(local.policy) }
}

resource "terraform_data" "function" {
  input = {
    name    = var.function_name
    role    = terraform_data.role.id
    timeout = local.seconds
    layers  = slice(concat(var.layers, ["base"]), 0, 1)
    memory  = lookup(local.variables, "MEMORY", "128")
  }

  triggers_replace = [
    terraform_data.role.id,
    md5(jsonencode(local.variables)),
  ]
}

resource "terraform_data" "rule" {
  count = var.schedule.rate > 0 ? 1 : 0

  input = {
    expression = local.expression
    target     = terraform_data.function.id
    name       = title(replace(var.function_name, "-", " "))
  }
}

output "function_id" {
  value = terraform_data.function.id
}

output "rule_names" {
  value = [for rule in terraform_data.rule : rule.input.name]
}

output "schedule" {
  value = try(terraform_data.rule[0].input.expression, "")
}
