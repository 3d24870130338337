"""Loops that are large: what a server keeps of them does not grow, and each element counts once whoever dies."""

from __future__ import annotations

import pytest

from tests.depth import times
from tests.faults.documents import Effects
from tests.faults.fleet import LEASE_S, Fleet
from tests.faults.test_holders import effects_in, of_type

GROWTH_KB = 30_000
MANY = 1_000_000
ITEMS = times(10_000)


def shards_done(fleet: Fleet, run: str) -> int:
    ((count,),) = fleet.rows("SELECT count(*) FROM entry WHERE execution_id = %s AND type = 'loop.shard.done'", run)
    return int(count)


@pytest.mark.clause("F5.1", "F3.1")
def test_the_sum_over_many_items_is_right_though_their_workers_are_killed(fleet: Fleet) -> None:
    text = f"""
    - step: start
      spec: {{loop_mode: fanout, reducers: {{total: sum, count: count}}, fanout: {{range_size: {ITEMS // 100}}}}}
      loop: {{in: {{range: {ITEMS}}}, iterator: i}}
      tool: [{{name: a, kind: noop, set_shared: {{total: "{{{{ iter.i }}}}", count: 1}}}}]
    """
    run = fleet.run("s0", text)
    for number, name in enumerate(("w0", "w1", "w2")):
        fleet.until(lambda least=10 * number: shards_done(fleet, run) > least, 30.0, "some of it is done")  # type: ignore[misc]
        fleet.workers[name].kill()
        fleet.restart(name)
    entries = fleet.ended(run)
    done = sorted((one["lo"], one["hi"]) for one in of_type(entries, "loop.shard.done"))
    assert [lo for lo, _ in done] == [0, *(hi for _, hi in done[:-1])]
    (fanin,) = of_type(entries, "loop.fanin.completed")
    assert (fanin["total"], fanin["succeeded"]) == (ITEMS, ITEMS)
    assert fanin["shared"] == {"total": sum(range(ITEMS)), "count": ITEMS}


@pytest.mark.clause("F3.1")
def test_a_task_of_ten_leases_runs_once_while_a_million_elements_go_by_and_servers_do_not_grow(
    fleet: Fleet, effects: Effects
) -> None:
    long = effects_in("long").replace(
        "- name: unkeyed", f"- {{name: a, kind: sleep, seconds: {10 * LEASE_S}}}\n      - name: unkeyed"
    )
    many = f"""
    - step: start
      spec: {{loop_mode: fanout}}
      loop: {{in: {{range: {MANY}}}, iterator: i}}
      tool: [{{name: a, kind: noop}}]
    """
    with fleet.guest(fleet.work("long", pool="long")):
        slow = fleet.run("s1", long, effects=effects.url)
        fleet.ended(fleet.run("s0", many.replace(str(MANY), "1000")))  # What is loaded once is loaded now.
        before = {name: process.memory_kb for name, process in fleet.servers.items()}
        run = fleet.run("s0", many)
        (fanin,) = of_type(fleet.ended(run), "loop.fanin.completed")
        assert (fanin["total"], fanin["succeeded"]) == (MANY, MANY)
        grown = {name: process.memory_kb - before[name] for name, process in fleet.servers.items()}
        assert max(grown.values()) < GROWTH_KB, grown
        (done,) = of_type(fleet.ended(slow), "task.done")[1:]
        assert done["task"] == "unkeyed"
        assert effects.counts("unkeyed", slow) == {"it": 1}
