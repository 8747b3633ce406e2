variable "buckets" {
  description = "Buckets by name."
  type = map(object({
    versioned  = bool
    days       = number
    extensions = list(string)
  }))
  default = {
    logs    = { versioned = false, days = 30, extensions = [".log", ".gz"] }
    backups = { versioned = true, days = 365, extensions = [".tar"] }
  }
}

variable "prefix" {
  type     = string
  default  = "acme"
  nullable = false
}

variable "readers" {
  type      = set(string)
  default   = ["auditor", "analyst"]
  sensitive = false
}

locals {
  versioned = [for name, bucket in var.buckets : name if bucket.versioned]
  expiring  = { for name, bucket in var.buckets : name => bucket.days if bucket.days < 90 }
  grants = flatten([
    for name in keys(var.buckets) : [
      for reader in var.readers : { bucket = name, reader = reader }
    ]
  ])
  longest = max([for bucket in values(var.buckets) : bucket.days]...)
  summary = <<-EOT
    %{for name in local.versioned~}
    ${name} is versioned
    %{endfor~}
    ${length(local.grants)} grants
  EOT
}

resource "terraform_data" "bucket" {
  for_each = var.buckets

  input = {
    name      = format("%s-%s", var.prefix, each.key)
    versioned = each.value.versioned
    days      = coalesce(each.value.days, 30)
    allowed   = join(",", each.value.extensions)
  }
}

resource "terraform_data" "grant" {
  for_each = { for grant in local.grants : "${grant.bucket}.${grant.reader}" => grant }

  input = {
    bucket = terraform_data.bucket[each.value.bucket].id
    reader = each.value.reader
    rank   = index(sort(var.readers), each.value.reader) + 1
  }
}

output "bucket_ids" {
  value = { for name, bucket in terraform_data.bucket : name => bucket.id }
}

output "expiring" {
  value = length(local.expiring) > 0 ? local.expiring : null
}

output "report" {
  value = trimspace(local.summary)
}

output "longest" {
  value = "${local.longest} days"
}
