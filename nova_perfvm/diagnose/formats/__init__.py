# SPDX-License-Identifier: Apache-2.0
"""Formats of reports: lines for people, HTML and JUnit's XML.

Each format is a function that returns text with a final line break.
"""
