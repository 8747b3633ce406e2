variable "name" {
  type = string
}

variable "owner" {
  type = string
}

variable "readers" {
  description = "Who may take messages off the queue."
  type        = list(string)
  default     = []
}

variable "keep_dead_letters" {
  type    = bool
  default = true
}
