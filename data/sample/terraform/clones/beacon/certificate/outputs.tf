output "certificate_id" {
  value      = forge_certificate.site.id
  depends_on = [forge_record.proof]
}
