# SPDX-License-Identifier: Apache-2.0
"""A page that shows what was measured: verdicts first, then plots."""
