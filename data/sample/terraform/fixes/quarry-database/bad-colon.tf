variable "max_storage_gb" {
  description: "Storage that the database may grow to."
  type       = number
  default    = 200
}
