# In an image's resource, openstack_images_image_v2, say
#   properties = local.perfvm_image_properties
locals {
  perfvm_image_properties = {
    "hw_disk_bus"               = "virtio"
    "hw_vif_model"              = "virtio"
    "hw_vif_multiqueue_enabled" = "true"
  }
}
