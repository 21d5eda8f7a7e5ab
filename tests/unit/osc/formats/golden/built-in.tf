# Placement refuses requests that name a trait or resource class which it
# does not know, so these come first; the commands are osc-placement's.
#   openstack --os-placement-api-version 1.7 resource class set CUSTOM_PERFVM_SLOT
#   openstack --os-placement-api-version 1.7 trait create CUSTOM_PERFVM_HIGH_PERFORMANCE

terraform {
  required_providers {
    openstack = {
      source = "terraform-provider-openstack/openstack"
    }
  }
}

resource "openstack_compute_flavor_v2" "hp_20c_64g" {
  name      = "hp.20c.64g"
  ram       = 65536
  vcpus     = 20
  disk      = 0
  ephemeral = 0
  swap      = 0
  is_public = true
  extra_specs = {
    "hw:cpu_policy"                        = "dedicated"
    "hw:cpu_thread_policy"                 = "prefer"
    "hw:numa_nodes"                        = "1"
    "hw:vif_multiqueue_enabled"            = "true"
    "perfvm:class"                         = "high-performance"
    "resources:CUSTOM_PERFVM_SLOT"         = "1"
    "trait:CUSTOM_PERFVM_HIGH_PERFORMANCE" = "required"
  }
}

resource "openstack_compute_flavor_v2" "hp_20c_128g" {
  name      = "hp.20c.128g"
  ram       = 131072
  vcpus     = 20
  disk      = 0
  ephemeral = 0
  swap      = 0
  is_public = true
  extra_specs = {
    "hw:cpu_policy"                        = "dedicated"
    "hw:cpu_thread_policy"                 = "prefer"
    "hw:numa_nodes"                        = "1"
    "hw:vif_multiqueue_enabled"            = "true"
    "perfvm:class"                         = "high-performance"
    "resources:CUSTOM_PERFVM_SLOT"         = "1"
    "trait:CUSTOM_PERFVM_HIGH_PERFORMANCE" = "required"
  }
}

resource "openstack_compute_flavor_v2" "hp_20c_200g" {
  name      = "hp.20c.200g"
  ram       = 204800
  vcpus     = 20
  disk      = 0
  ephemeral = 0
  swap      = 0
  is_public = true
  extra_specs = {
    "hw:cpu_policy"                        = "dedicated"
    "hw:cpu_thread_policy"                 = "prefer"
    "hw:numa_nodes"                        = "1"
    "hw:vif_multiqueue_enabled"            = "true"
    "perfvm:class"                         = "high-performance"
    "resources:CUSTOM_PERFVM_SLOT"         = "1"
    "trait:CUSTOM_PERFVM_HIGH_PERFORMANCE" = "required"
  }
}

resource "openstack_compute_flavor_v2" "g_1c_2g" {
  name      = "g.1c.2g"
  ram       = 2048
  vcpus     = 1
  disk      = 20
  ephemeral = 0
  swap      = 0
  is_public = true
  extra_specs = {
    "hw:cpu_policy"                        = "shared"
    "perfvm:class"                         = "general"
    "trait:CUSTOM_PERFVM_HIGH_PERFORMANCE" = "forbidden"
  }
}

resource "openstack_compute_flavor_v2" "g_2c_4g" {
  name      = "g.2c.4g"
  ram       = 4096
  vcpus     = 2
  disk      = 40
  ephemeral = 0
  swap      = 0
  is_public = true
  extra_specs = {
    "hw:cpu_policy"                        = "shared"
    "perfvm:class"                         = "general"
    "trait:CUSTOM_PERFVM_HIGH_PERFORMANCE" = "forbidden"
  }
}

resource "openstack_compute_flavor_v2" "g_4c_8g" {
  name      = "g.4c.8g"
  ram       = 8192
  vcpus     = 4
  disk      = 40
  ephemeral = 0
  swap      = 0
  is_public = true
  extra_specs = {
    "hw:cpu_policy"                        = "shared"
    "perfvm:class"                         = "general"
    "trait:CUSTOM_PERFVM_HIGH_PERFORMANCE" = "forbidden"
  }
}

resource "openstack_compute_flavor_v2" "g_8c_16g" {
  name      = "g.8c.16g"
  ram       = 16384
  vcpus     = 8
  disk      = 80
  ephemeral = 0
  swap      = 0
  is_public = true
  extra_specs = {
    "hw:cpu_policy"                        = "shared"
    "perfvm:class"                         = "general"
    "trait:CUSTOM_PERFVM_HIGH_PERFORMANCE" = "forbidden"
  }
}
