# Placement refuses requests that name a trait or resource class which it
# does not know, so these come first; the commands are osc-placement's.
#   openstack --os-placement-api-version 1.7 resource class set CUSTOM_PERFVM_READ_IOPS
#   openstack --os-placement-api-version 1.7 resource class set CUSTOM_PERFVM_UNIT
#   openstack --os-placement-api-version 1.7 resource class set CUSTOM_PERFVM_WRITE_IOPS
#   openstack --os-placement-api-version 1.7 trait create CUSTOM_PERFVM_CHILD_A
#   openstack --os-placement-api-version 1.7 trait create CUSTOM_PERFVM_CHILD_B
#   openstack --os-placement-api-version 1.7 trait create CUSTOM_PERFVM_ELASTIC_2
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
    "hw:cpu_policy"                      = "dedicated"
    "hw:cpu_thread_policy"               = "prefer"
    "hw:emulator_threads_policy"         = "share"
    "hw:mem_page_size"                   = "1GB"
    "hw:numa_nodes"                      = "1"
    "hw:vif_multiqueue_enabled"          = "true"
    "perfvm:class"                       = "high-performance"
    "resources:CUSTOM_PERFVM_READ_IOPS"  = "5000"
    "resources:CUSTOM_PERFVM_UNIT"       = "1000"
    "resources:CUSTOM_PERFVM_WRITE_IOPS" = "1000"
    "trait:CUSTOM_PERFVM_ELASTIC_2"      = "required"
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
    "hw:cpu_policy"                      = "dedicated"
    "hw:cpu_thread_policy"               = "prefer"
    "hw:emulator_threads_policy"         = "share"
    "hw:mem_page_size"                   = "1GB"
    "hw:numa_nodes"                      = "1"
    "hw:vif_multiqueue_enabled"          = "true"
    "perfvm:class"                       = "high-performance"
    "resources:CUSTOM_PERFVM_READ_IOPS"  = "5000"
    "resources:CUSTOM_PERFVM_UNIT"       = "1000"
    "resources:CUSTOM_PERFVM_WRITE_IOPS" = "1000"
    "trait:CUSTOM_PERFVM_ELASTIC_2"      = "required"
  }
}

resource "openstack_compute_flavor_v2" "hp_20c_64g_a0097a9e" {
  name      = "hp_20c_64g"
  ram       = 65536
  vcpus     = 4
  disk      = 10
  ephemeral = 0
  swap      = 0
  is_public = true
  extra_specs = {
    "group_policy"                          = "none"
    "hw:cpu_policy"                         = "shared"
    "perfvm:class"                          = "small"
    "resources_perfvm_a:CUSTOM_PERFVM_UNIT" = "1"
    "resources_perfvm_b:CUSTOM_PERFVM_UNIT" = "1"
    "trait:CUSTOM_PERFVM_ELASTIC_2"         = "required"
    "trait:CUSTOM_PERFVM_HIGH_PERFORMANCE"  = "forbidden"
    "trait_perfvm_a:CUSTOM_PERFVM_CHILD_A"  = "required"
    "trait_perfvm_b:CUSTOM_PERFVM_CHILD_B"  = "required"
  }
}

resource "openstack_compute_flavor_v2" "_2______g_____if____4g" {
  name      = "2 × \"$${g}\" %%{if} \\ 4g"
  ram       = 4096
  vcpus     = 2
  disk      = 10
  ephemeral = 0
  swap      = 0
  is_public = true
  extra_specs = {
    "group_policy"                          = "none"
    "hw:cpu_policy"                         = "shared"
    "perfvm:class"                          = "general"
    "resources_perfvm_a:CUSTOM_PERFVM_UNIT" = "1"
    "resources_perfvm_b:CUSTOM_PERFVM_UNIT" = "1"
    "trait:CUSTOM_PERFVM_ELASTIC_2"         = "required"
    "trait:CUSTOM_PERFVM_HIGH_PERFORMANCE"  = "forbidden"
    "trait_perfvm_a:CUSTOM_PERFVM_CHILD_A"  = "required"
    "trait_perfvm_b:CUSTOM_PERFVM_CHILD_B"  = "required"
  }
}
