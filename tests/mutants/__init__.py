# SPDX-License-Identifier: Apache-2.0
"""Faults planted in the package one by one, and the unit tests that see them.

``make mutants`` draws places in the rooms that decide, plants a fault of cosmic-ray
at each (a comparison turned, a number off by one, ``and`` for ``or``...) and runs the
unit tests that reach the line.  A fault for which no test fails has survived.
"""
