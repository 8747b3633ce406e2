variable "team" {
  type = string
}

variable "owner" {
  description = "Mail address of whoever answers for the money."
  type        = string
}

variable "watchers" {
  type    = list(string)
  default = []
}

variable "limit" {
  description = "Euros per month."
  type        = number

  validation {
    condition     = var.limit > 0
    error_message = "The limit must be above 0."
  }
}
