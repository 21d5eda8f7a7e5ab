# SPDX-License-Identifier: Apache-2.0
"""Validators with which nova-api checks ``perfvm:`` extra specs of flavors."""
