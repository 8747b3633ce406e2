output "bucket_url" {
  value = forge_bucket.this.url
}

output "key_id" {
  value     = forge_key.bucket.id
  sensitive = true
}
