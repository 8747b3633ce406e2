# Tries to leave the folder of the module: files by their dots, a module from far above, and a planted file.
resource "forge_budget" "team" {
  name          = file("../../../../../../etc/passwd")
  monthly_limit = length(file("/proc/self/environ"))
}

module "outside" {
  source = "../../../../../../../../etc"
}

# --- ../../../../tests/planted.tf
output "planted" {
  value = module.outside
}
