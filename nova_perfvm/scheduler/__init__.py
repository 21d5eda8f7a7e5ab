# SPDX-License-Identifier: Apache-2.0
"""The filter and the weigher: they turn Nova's objects into facts for the rules."""
