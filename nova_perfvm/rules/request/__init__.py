# SPDX-License-Identifier: Apache-2.0
"""The rules about a request alone, one file each."""
