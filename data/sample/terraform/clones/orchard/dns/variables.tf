variable "domain" {
  description = "Domain that the zone answers for."
  type        = string
}

variable "addresses" {
  description = "Addresses of the bare domain."
  type        = list(string)
}

variable "aliases" {
  description = "Further names and what they point to."
  type        = map(string)
  default     = {}
}
