terraform {
  required_version = ">= 1.5.0"

  required_providers {
    forge = {
      source  = "registry.example/forge/forge"
      version = "~> 2.1"
    }
  }
}
