# SPDX-License-Identifier: Apache-2.0
"""Output formats of commands: JSON, HTML, shell, Terraform and others.

Each format is a function that returns text with a final line break.
"""
