# SPDX-License-Identifier: Apache-2.0
"""The formats that commands print in: JSON, HTML, shell, Terraform and others.

Each format is a function from values to text with a final line break.
"""
