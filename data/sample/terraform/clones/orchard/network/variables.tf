variable "name" {
  description = "Prefix of all names."
  type        = string
}

variable "cidr" {
  description = "Address range of the network."
  type        = string
  default     = "10.20.0.0/16"

  validation {
    condition     = can(cidrhost(var.cidr, 0))
    error_message = "The range must be in CIDR notation."
  }
}

variable "zones" {
  description = "Zones that get a subnet."
  type        = list(string)
  default     = ["north-a", "north-b"]
}

variable "public_zones" {
  description = "Zones whose subnet has a public address."
  type        = list(string)
  default     = []
}

variable "labels" {
  type    = map(string)
  default = {}
}
