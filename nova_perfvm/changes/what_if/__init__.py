# SPDX-License-Identifier: Apache-2.0
"""What a cloud would be after changes that nobody has made yet."""
