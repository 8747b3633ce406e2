variable "service" {
  description = "The service to run."
  type = object({
    name     = string
    image    = string
    replicas = optional(number, 2)
    ports    = optional(list(number), [80])
    env      = optional(map(string), {})
  })

  validation {
    condition     = var.service.replicas > 0 && var.service.replicas <= 10
    error_message = "Between 1 and 10 replicas are supported, not ${var.service.replicas}."
  }
}

variable "environment" {
  type    = string
  default = "dev"

  validation {
    condition     = contains(["dev", "stage", "prod"], var.environment)
    error_message = "The environment must be dev, stage or prod."
  }
}

variable "memory" {
  type    = number
  default = 512
}

locals {
  full_name = join("-", [var.environment, var.service.name])
  variables = [for key, value in var.service.env : { name = upper(key), value = value }]
  definition = jsonencode([{
    name         = local.full_name
    image        = var.service.image
    memory       = var.memory
    portMappings = [for port in var.service.ports : { containerPort = port }]
    environment  = local.variables
  }])
  is_production = var.environment == "prod"
}

resource "terraform_data" "task" {
  input            = local.definition
  triggers_replace = sha256(local.definition)
}

resource "terraform_data" "service" {
  count = var.service.replicas

  input = {
    name  = "${local.full_name}-${count.index}"
    task  = terraform_data.task.output
    ports = toset(var.service.ports)
  }

  lifecycle {
    ignore_changes = [input]

    precondition {
      condition     = !local.is_production || var.service.replicas >= 2
      error_message = "Production needs at least two replicas."
    }
  }
}

resource "terraform_data" "notify" {
  for_each = toset(local.is_production ? ["pager", "mail"] : ["mail"])

  provisioner "local-exec" {
    command     = "echo ${each.key} ${local.full_name}"
    working_dir = path.module
    environment = {
      SERVICE = local.full_name
    }
  }
}

check "size" {
  assert {
    condition     = length(terraform_data.service) == var.service.replicas
    error_message = "Some replicas are missing."
  }
}

output "names" {
  value = terraform_data.service[*].input.name
}

output "first" {
  value     = terraform_data.service[0].id
  sensitive = true
}
