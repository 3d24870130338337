"""Digests of documents never change: runs, the catalog and schedules are stored under them."""

import pytest

from tests.dialects.job.support import net_of as job_net
from tests.dialects.playbook.support import net_of as playbook_net

PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: über }
workload: { city: Tromsø, items: [1, 2] }
keychain:
  - { name: api, kind: static, value: VALUE }
workflow:
  - step: start
    tool: { kind: http, url: "https://example.com/{{ workload.city }}", headers: { authorization: VALUE }, auth: api }
    next: { arcs: [{ step: each, when: "{{ event.name == 'step.done' }}" }] }
  - step: each
    loop: { in: "{{ workload.items }}", iterator: item }
    tool: { kind: log, message: "{{ iter.item }}" }
"""
KEEPING = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: keeping }
executor: { spec: { inputs: open } }
state: { cursor: 0 }
workflow:
  - step: start
    tool: { kind: noop, set: { state.cursor: 5 } }
"""
JOB = """\
context: { path: Tromsø.csv }
components:
  - { name: orders, type: fixed_rows, params: { columns: [id], rows: [[1]] } }
  - { name: keep, type: filter, params: { where: id > 0 } }
  - { name: show, type: log_rows }
  - { name: tell, type: warn, params: { message: "https://user:VALUE@example.com/" } }
connections:
  data: |
    orders -> keep
    keep -> show
"""
LOOP = """\
job_config: { fail_strategy: STRATEGY, inputs: open }
state: { cursor: 0 }
components:
  - { name: each, type: iterate_list, params: { items: [1, 2] } }
  - { name: tell, type: warn, params: { message: "{{ iteration.item }}" } }
connections:
  control: each (iterate) tell
"""


@pytest.mark.parametrize(
    ("text", "digest"),
    [
        (PLAYBOOK, "cf5e9e038f26b9f9c6544f49621134577d2e21b789b61a25a3baefebf90e9668"),
        (KEEPING, "1943bcacd8e2bbd3cc4bd14be4962bd4bbcae7d8b8854b4298a0dc7aa65be3f0"),
    ],
)
def test_the_digest_of_a_playbook_is_what_it_always_was(text: str, digest: str) -> None:
    assert playbook_net(text).digest == digest


@pytest.mark.parametrize(
    ("text", "digest"),
    [
        (JOB, "9101a044bac342a486f5a6698a41011f9612de45758cfe93ecb33b39b77d5e9a"),
        (LOOP.replace("STRATEGY", "halt"), "3493e8b8e734328a2598964f029f3611079d77b77169455c152c4ebf7f5e25e9"),
        (
            LOOP.replace("STRATEGY", "continue_then_fail"),
            "59588cab6c1292dcb39bb135ef7208d5320aadef188b832f1efb5d7e5cec2526",
        ),
    ],
)
def test_the_digest_of_a_job_is_what_it_always_was(text: str, digest: str) -> None:
    assert job_net(text).digest == digest


def test_a_secret_in_the_document_has_no_part_in_its_digest() -> None:
    assert playbook_net(PLAYBOOK).digest == playbook_net(PLAYBOOK.replace("VALUE", "s3cret")).digest
    assert job_net(JOB).digest == job_net(JOB.replace("VALUE", "s3cret")).digest
