# SPDX-License-Identifier: Apache-2.0
"""Plugins that Watcher loads by their entry points; nothing else imports them."""
