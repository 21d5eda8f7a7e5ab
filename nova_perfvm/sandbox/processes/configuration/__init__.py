# SPDX-License-Identifier: Apache-2.0
"""What the services' configuration files say; text only, nothing is written."""
