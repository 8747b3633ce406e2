variable "name" {
  type = string
}

variable "engine_version" {
  type    = string
  default = "15"
}

variable "storage_gb" {
  description = "Storage to begin with."
  type        = number
  default     = 20
}

# Two weeks are what the auditors ask for.
variable "backup_days" {
  type    = number
  default = 14
}

variable "storage_gb" {
  description = "Storage that the database may grow to."
  type        = number
  default     = 200
}
