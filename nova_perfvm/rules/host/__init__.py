# SPDX-License-Identifier: Apache-2.0
"""The rules about one host, one file each.

The facts of a host may be a minute old; Placement enforces limits for requests that
come at once.  A rule refuses a host in doubt.
"""
