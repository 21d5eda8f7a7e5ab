# SPDX-License-Identifier: Apache-2.0
"""Read what a machine shows, and read it again from the file."""
