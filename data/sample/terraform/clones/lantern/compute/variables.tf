variable "name" {
  type = string
}

variable "image_family" {
  type    = string
  default = "plain-12"
}

variable "size" {
  type    = string
  default = "small"
}

variable "subnet_ids" {
  type = list(string)
}

variable "max_count" {
  type    = number
  default = 4
}

variable "scratch_gb" {
  type    = number
  default = 100
}
