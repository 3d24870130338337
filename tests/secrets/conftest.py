"""Every state folder that a test in here leaves is scanned for the session's canary."""

from __future__ import annotations

from tests.secrets.watch import canary, no_canary_in_state_folders

__all__ = ["canary", "no_canary_in_state_folders"]
