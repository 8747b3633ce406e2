variable "project" {
  type = string
}

variable "purpose" {
  type = string
}

variable "suffix" {
  type    = string
  default = ""
}

variable "region" {
  type    = string
  default = "north"
}

variable "keep_versions" {
  description = "Whether old versions of an object are kept."
  type        = bool
  default     = true
}

variable "expiry" {
  description = "Days after which objects go, by prefix."
  type        = map(number)
  default     = { "logs/" = 30 }
}
