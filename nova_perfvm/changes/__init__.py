# SPDX-License-Identifier: Apache-2.0
"""From what is seen of a cloud to what should be: pure, without any request."""
