variable "backup_days" {
  description = "Storage that the database may grow to."
  type        = number
  default     = 200
}
