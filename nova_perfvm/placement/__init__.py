# SPDX-License-Identifier: Apache-2.0
"""What Placement is to hold: what classes take of it, what hosts offer it."""
