variable "storage_limit_gb" {
  description = "Storage that the database may grow to."
  type        = number
  default     = null
  nullable    = true
}
