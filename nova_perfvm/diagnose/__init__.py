# SPDX-License-Identifier: Apache-2.0
"""What is wrong, why, and how much room is left: pure, of a policy and facts."""
