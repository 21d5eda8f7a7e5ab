# SPDX-License-Identifier: Apache-2.0
"""The rules that a host and a guest have to keep while they run, one file each."""
