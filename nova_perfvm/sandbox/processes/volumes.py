# SPDX-License-Identifier: Apache-2.0
"""A Cinder backend whose volumes take no disk space."""

from __future__ import annotations

from typing import Any

from cinder.volume import driver


class PretendedDriver(driver.VolumeDriver):  # type: ignore[misc]
    """A driver whose volumes exist only as rows in Cinder's database."""

    VERSION = "1.0"

    def _done(self, *_args: Any, **_kwargs: Any) -> None:
        """Do nothing, as the volume has no disk."""

    check_for_setup_error = _done
    create_volume = delete_volume = extend_volume = _done
    create_cloned_volume = create_volume_from_snapshot = _done
    create_snapshot = delete_snapshot = _done
    create_export = ensure_export = remove_export = _done

    def clone_image(self, *_args: Any) -> tuple[dict[str, Any], bool]:
        """Report the image as cloned, so that Cinder writes no data."""
        return {}, True

    def initialize_connection(self, *_args: Any) -> dict[str, Any]:
        """Return connection data that select libvirt's fake volume driver in Nova."""
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
