variable "domain" {
  type = string
}

variable "names" {
  description = "Hosts below the domain that the certificate is for."
  type        = list(string)
  default     = ["www"]
}
