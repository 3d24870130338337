"""What every event log keeps to. An adapter's test class inherits this and says how its log is opened."""

from __future__ import annotations

from tests.contracts.log_entries_contract import LogEntriesContract
from tests.contracts.log_executions_contract import LogExecutionsContract
from tests.contracts.log_keeping_contract import LogKeepingContract


class LogContract(LogEntriesContract, LogExecutionsContract, LogKeepingContract):
    pass
