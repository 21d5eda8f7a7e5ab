# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""One line of an oslo.config file, with why it is there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Setting:
    """One option.

    :ivar section: the section of the file, such as ``compute``
    :ivar values: one line each; none: the option stays unset on purpose
    :ivar why: one or two sentences for the comment above it
    """

    section: str
    option: str
    values: tuple[str, ...]
    why: str
