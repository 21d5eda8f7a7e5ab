# SPDX-License-Identifier: Apache-2.0
"""One record of what a flavor promises, what holds, and by which evidence."""
