"""How large ranges are."""

from __future__ import annotations

from penstock.server.terms import HAND_OUT_S, LARGEST_RANGE, TARGET_S, Pace
from tests.cases import cases


@cases(
    "each_s, remaining, slots, size",
    [
        (0.01, 1_000_000, 4, 1_000),  # Ten seconds of work.
        (1e-6, 10_000_000, 4, LARGEST_RANGE),
        (60.0, 100, 4, 1),
        (0.01, 400, 4, 50),  # Near the end so small that all slots end together,
        (0.01, 8, 4, 10),  # but not smaller than what is worth a lease.
        (0.01, 1_000_000, 7_000, 490),  # With thousands of slots no shorter than it takes to hand out one to each.
        (0.01, 1_000_000, 100_000, 1_000),
    ],
)
def test_a_range_keeps_a_slot_busy_and_can_be_handed_out_in_time(
    each_s: float, remaining: int, slots: int, size: int
) -> None:
    pace = Pace(None)
    pace.saw(1_000, each_s * 1_000_000)
    assert pace.size(remaining, slots) == size
    assert size * each_s <= max(TARGET_S, each_s)
    if size * each_s < TARGET_S and remaining > size * slots:
        assert size == LARGEST_RANGE or size * each_s >= slots * HAND_OUT_S


def test_a_fixed_size_is_kept() -> None:
    assert Pace(7).size(3, 100) == 7
