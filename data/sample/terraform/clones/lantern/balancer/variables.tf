variable "name" {
  type = string
}

variable "subnet_ids" {
  type = list(string)
}

variable "group_ids" {
  description = "Instance groups behind the balancer."
  type        = list(string)
}

variable "target_port" {
  type    = number
  default = 8080
}
