"""One suite per port, run on every adapter."""

import pytest

# The suites are not test modules by name, and should explain a failed assertion all the same.
pytest.register_assert_rewrite(
    "tests.contracts.blobs_contract",
    "tests.contracts.log_entries_contract",
    "tests.contracts.log_executions_contract",
    "tests.contracts.log_keeping_contract",
    "tests.contracts.partitions_contract",
)
