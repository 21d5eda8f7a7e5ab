# SPDX-License-Identifier: Apache-2.0
"""What has to hold in a guest, one file a check."""
