# SPDX-License-Identifier: Apache-2.0
"""A backend of Cinder whose volumes take no disk."""

from __future__ import annotations

from typing import Any

from cinder.volume import driver


class PretendedDriver(driver.VolumeDriver):  # type: ignore[misc]
    """Take every volume for made; it is a row in Cinder's database, no more."""

    VERSION = "1.0"

    def _done(self, *_args: Any, **_kwargs: Any) -> None:
        """Do nothing: there is no disk."""

    check_for_setup_error = _done
    create_volume = delete_volume = extend_volume = _done
    create_cloned_volume = create_volume_from_snapshot = _done
    create_snapshot = delete_snapshot = _done
    create_export = ensure_export = remove_export = _done

    def clone_image(self, *_args: Any) -> tuple[dict[str, Any], bool]:
        """Say that the volume has the image, so that Cinder does not write it."""
        return {}, True

    def initialize_connection(self, *_args: Any) -> dict[str, Any]:
        """Return how Nova attaches it: by the libvirt driver's double of a disk."""
        return {"driver_volume_type": "fake", "data": {}}

    def _update_volume_stats(self) -> None:
        self._stats = {
            "volume_backend_name": "pretended",
            "vendor_name": "nova_perfvm",
            "driver_version": self.VERSION,
            "storage_protocol": "fake",
            "total_capacity_gb": "infinite",
            "free_capacity_gb": "infinite",
        }
