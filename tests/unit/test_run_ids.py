"""Ids of runs: unique wherever they are made, in the order of time, and fit for RQ."""

import os
import re
import time
from uuid import RFC_4122

from scheduler.run_ids import new_run_id, uuid7


def test_an_id_is_a_uuid_of_version_7_behind_the_partition() -> None:
    made = uuid7()

    assert (made.version, made.variant) == (7, RFC_4122)
    assert re.fullmatch(r"0-[0-9a-f]{32}", new_run_id())


def test_its_first_48_bits_are_the_time() -> None:
    before = time.time_ns() // 1_000_000
    milliseconds = uuid7().int >> 80

    assert before <= milliseconds <= time.time_ns() // 1_000_000


def test_ids_of_one_millisecond_are_in_the_order_in_which_they_were_made() -> None:
    places = [uuid7().int >> 64 for _ in range(5_000)]

    assert places == sorted(places)


def test_its_last_62_bits_are_random() -> None:
    ids = [uuid7().int for _ in range(2_000)]
    always, never = ids[0], ids[0]
    for one in ids:
        always &= one
        never |= one
    fixed = (always | ~never) & ((1 << 64) - 1)

    assert len(set(ids)) == len(ids)
    assert fixed == 0b11 << 62  # the variant


def test_a_forked_child_makes_other_ids() -> None:
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write_end, "".join(new_run_id() for _ in range(100)).encode())
        os._exit(0)
    ours = {new_run_id() for _ in range(100)}
    os.waitpid(child, 0)
    text = os.read(read_end, 100_000).decode()

    theirs = {text[start : start + 34] for start in range(0, len(text), 34)}
    assert len(theirs) == 100
    assert not ours & theirs
