# SPDX-License-Identifier: Apache-2.0
"""The rules about one host, one file each.

Facts are the scheduler's and may be a minute old; what must hold under
concurrency is for Placement to enforce.  Here, doubt is resolved by refusing.
"""
