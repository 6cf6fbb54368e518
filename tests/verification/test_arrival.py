"""An output that changes is waited for until it stays as it is."""

from jobs.verification.arrival import Arrival, arrival_of
from jobs.verification.verdict import Sighting
from tests.fakes import NOON
from tests.verdicts import a_sighting


def look(
    before: Arrival | None,
    output: Sighting,
    now: float,
    *,
    looked_at: float | None = None,
    is_late: bool = False,
) -> Arrival:
    since = now - 5 if looked_at is None else looked_at
    return arrival_of(before, output, looked_at=since, is_late=is_late, settle=10, patience=60, now=now)


def test_an_output_has_arrived_once_it_stayed_as_it_is_for_the_settle_time() -> None:
    output, arrival, settled = a_sighting(), None, []
    for seconds in (0, 5, 10):
        arrival = look(arrival, output, NOON + seconds)
        settled.append(arrival.is_settled)
    assert settled == [False, False, True]


def test_a_change_begins_the_wait_anew() -> None:
    growing = [a_sighting(1), a_sighting(2), a_sighting(2), a_sighting(2)]
    arrival, settled = None, []
    for number, output in enumerate(growing):
        arrival = look(arrival, output, NOON + 5 * number)
        settled.append(arrival.is_settled)
    assert settled == [False, False, False, True]


def test_a_clock_that_was_set_back_begins_the_wait_anew() -> None:
    arrival = look(None, a_sighting(), NOON)
    arrival = look(arrival, a_sighting(), NOON - 3600)
    assert not arrival.is_settled
    assert arrival.since == NOON - 3600


def test_an_output_that_goes_on_changing_for_too_long_is_taken_as_it_is() -> None:
    arrival, settled = None, []
    for seconds in range(0, 75, 5):
        arrival = look(arrival, a_sighting(seconds), NOON + seconds)
        settled.append(arrival.is_settled)
    assert settled == [False] * 12 + [True] * 3


def test_an_output_came_when_it_was_written() -> None:
    arrival = look(None, a_sighting(mtime=NOON - 2), NOON)
    assert arrival.came_at == NOON - 2
    assert look(arrival, a_sighting(mtime=NOON - 2), NOON + 5).came_at == NOON - 2


def test_an_old_file_that_was_put_there_came_after_the_last_look() -> None:
    """`cp -p` and `mv` keep a file's time, and it was not there before."""
    arrival = look(None, a_sighting(mtime=NOON - 86_400), NOON, looked_at=NOON - 5)
    assert arrival.came_at == NOON - 5


def test_an_output_from_the_future_came_now() -> None:
    assert look(None, a_sighting(mtime=NOON + 86_400), NOON).came_at == NOON


def test_what_came_while_nobody_watched_is_late_until_it_changes() -> None:
    late = look(None, a_sighting(1), NOON, looked_at=NOON - 86_400, is_late=True)
    assert look(late, a_sighting(1), NOON + 10).is_late
    assert not look(late, a_sighting(2), NOON + 10).is_late
