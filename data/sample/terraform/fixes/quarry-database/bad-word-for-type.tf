variable "max_storage_gb" {
  description = "Storage that the database may grow to."
  kind        = number
  default     = 200
}
