# SPDX-License-Identifier: Apache-2.0
"""What measurements say: ratios with their intervals, verdicts, scaling."""
