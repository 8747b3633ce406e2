variable "name" {
  type = string
}

variable "bucket" {
  description = "Where reports are put."
  type        = string
}

variable "cleanup_schedule" {
  type    = string
  default = "30 2 * * *"
}

variable "keep_days" {
  type    = number
  default = 30
}
