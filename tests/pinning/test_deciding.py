"""In force is what was approved, and nothing else; what the file says otherwise is asked about, once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.pinning.deciding import MOST_UNASKED, Decision, decide, is_first_look, needs_approval, pins_in_force
from jobs.pinning.kind import How, Kind, ProposalState
from jobs.pinning.pin import Entry, Pin, Proposal, Spec, decoded, encoded, hash_of
from jobs.verification.spec import CommandCheck, WorkflowSpec
from jobs.watchlist.killers import CommandSpec, DryRunSpec, ProcessSpec
from jobs.watchlist.sources import SourceSpec

NOW: Final = 1_780_000_000.0
USER: Final = 42
OPEN, APPROVED, REJECTED, WITHDRAWN = ProposalState


def workflow(name: str = "nightly", *, max_age: float = 60.0, argv: tuple[str, ...] = ()) -> Entry:
    command = CommandCheck(argv=argv, files={}) if argv else None
    spec = WorkflowSpec(name=name, output=f"/out/{name}", max_age=max_age, command=command)
    return Entry(kind=Kind.WORKFLOW, name=name, spec=spec)


def source(name: str = "main", *, killer: str | None = None) -> Entry:
    spec = SourceSpec(name=name, path=f"/log/{name}", killer=killer)
    return Entry(kind=Kind.SOURCE, name=name, spec=spec)


def killer(name: str = "cli", spec: Spec | None = None) -> Entry:
    return Entry(kind=Kind.KILLER, name=name, spec=spec or CommandSpec(argv=("/bin/stop",), files={}))


Key = tuple[Kind, str]
DRY: Final = killer("rehearsal", DryRunSpec())


def pin_of(entry: Entry, how: How = How.FIRST_USE, by: int | None = None) -> Pin:
    text = encoded(entry.spec)
    return Pin(kind=entry.kind, name=entry.name, entry=text, hash=hash_of(text), how=how, by=by, at=NOW)


def keyed(pin: Pin) -> tuple[Key, Spec | None]:
    return (pin.kind, pin.name), None if pin.entry is None else decoded(pin.kind, pin.entry)


def gone(entry: Entry) -> Entry:
    return msgspec.structs.replace(entry, spec=None)


@dataclass
class Ledger:
    """The rows, and what the file says; a look at it is kept as it asks for, and its laws hold."""

    written: list[Entry] | None = field(default_factory=list)
    pins: list[Pin] = field(default_factory=list)
    proposals: list[Proposal] = field(default_factory=list)
    now: float = NOW

    def look(self) -> Decision:
        before = dict(map(keyed, pins_in_force(self.pins)))
        known = self.pins[:]
        decision = decide(self.written, self.pins, self.newest(), self.now)
        self._keep(decision)
        self._check(decision, before, known)
        return decision

    def newest(self) -> Sequence[Proposal]:
        return list({(each.kind, each.name): each for each in self.proposals}.values())

    def _keep(self, decision: Decision) -> None:
        for proposal in decision.withdrawn:
            self.save(proposal)
        for proposal in decision.proposed:
            self.proposals.append(replace(proposal, id=len(self.proposals) + 1))
        for pin in (*decision.first_use, *decision.let_go):
            self.pins.append(replace(pin, id=len(self.pins) + 1))

    def _check(self, decision: Decision, before: dict[Key, Spec | None], known: list[Pin]) -> None:
        in_force = {(entry.kind, entry.name): entry.spec for entry in decision.in_force}
        first = dict(map(keyed, decision.first_use))
        let_go = {(pin.kind, pin.name) for pin in decision.let_go}
        assert in_force == {key: spec for key, spec in {**before, **first}.items() if key not in let_go}
        assert all(
            pin.how is not How.APPROVED for pin in pins_in_force(known) if (pin.kind, pin.name) in let_go
        )
        assert list(in_force) == [(pin.kind, pin.name) for pin in pins_in_force(self.pins)]
        assert all(before.get(key, spec) == spec for key, spec in first.items())
        assert all(item in [*map(keyed, pins_in_force(known)), *first.items()] for item in in_force.items())
        asked = [(each.kind, each.name) for each in self.proposals if each.state is OPEN]
        assert len(asked) == len(set(asked))

    def save(self, proposal: Proposal) -> None:
        self.proposals[proposal.id - 1] = proposal

    def answer(self, state: ProposalState, key: tuple[Kind, str] | None = None) -> None:
        """Answer an open proposal as the chat does."""
        proposal = next(
            each for each in self.proposals if each.state is OPEN and key in {None, (each.kind, each.name)}
        )
        self.save(replace(proposal, state=state, decided_by=USER, decided_at=NOW))
        if state is APPROVED:
            self.pins.append(
                Pin(
                    id=len(self.pins) + 1,
                    kind=proposal.kind,
                    name=proposal.name,
                    entry=proposal.entry,
                    hash=proposal.hash,
                    how=How.APPROVED,
                    by=USER,
                    at=NOW,
                )
            )


def ledger(*written: Entry) -> Ledger:
    """A file that was looked at before."""
    made = Ledger(written=list(written), now=NOW - 60)
    made.look()
    made.now = NOW
    return made


def names(decision: Decision) -> list[str]:
    return [entry.name for entry in decision.in_force]


# ── first use ─────────────────────────────────────────────────────────────────────────────────────


def test_on_the_first_look_all_is_pinned_whatever_it_is() -> None:
    written = (
        source(),
        killer(),
        killer("signal", ProcessSpec(match="agent")),
        workflow(argv=("/bin/check",)),
    )
    decision = decide(written, [], [], NOW)
    assert decision == Decision(in_force=written, first_use=tuple(map(pin_of, written)))


def test_a_second_look_at_the_same_file_finds_nothing() -> None:
    looked = ledger(source(), killer(), workflow())
    assert looked.look() == Decision(in_force=(source(), killer(), workflow()))


@pytest.mark.parametrize("entry", [source("second"), DRY, workflow("weekly")], ids=lambda each: each.kind)
def test_later_what_is_new_and_runs_nothing_is_pinned_at_once(entry: Entry) -> None:
    looked = ledger(source())
    looked.written = [entry, source()]
    decision = looked.look()
    assert decision == Decision(in_force=(source(), entry), first_use=(pin_of(entry),))


@pytest.mark.parametrize(
    "entry",
    [
        killer(),
        killer("signal", ProcessSpec(match="agent")),
        workflow(argv=("/bin/check",)),
        source("second", killer="cli"),
    ],
    ids=["a command", "a signal", "a check", "what has a killer used"],
)
def test_later_what_is_new_and_acts_waits_for_a_person(entry: Entry) -> None:
    looked = ledger(source())
    looked.written = [source(), entry]
    decision = looked.look()
    (proposal,) = decision.proposed
    assert (proposal.kind, proposal.name, proposal.entry) == (entry.kind, entry.name, encoded(entry.spec))
    assert (proposal.hash, proposal.found_at, proposal.state) == (hash_of(encoded(entry.spec)), NOW, OPEN)
    assert decision == Decision(in_force=(source(),), proposed=(proposal,))
    assert looked.look() == Decision(in_force=(source(),))
    looked.answer(APPROVED)
    assert looked.look() == Decision(in_force=(source(), entry))


def test_what_waited_and_runs_nothing_any_more_waits_no_longer() -> None:
    looked = ledger(source())
    looked.written = [source(), killer()]
    looked.look()
    looked.written = [source(), killer("cli", DryRunSpec())]
    decision = looked.look()
    assert [pin.name for pin in decision.first_use] == ["cli"]
    assert [(each.name, each.state) for each in decision.withdrawn] == [("cli", WITHDRAWN)]


def test_what_was_pinned_outside_the_bot_makes_no_look_the_second() -> None:
    """A person who has verified runs first has shown the bot nothing."""
    check = workflow(argv=("/bin/check",))
    by_hand = [pin_of(check, How.FIRST_VERIFY), pin_of(workflow("weekly"), How.APPROVED)]
    assert is_first_look(by_hand, [])
    looked = Ledger(written=[killer(), check, workflow("weekly")], pins=by_hand)
    assert [pin.name for pin in looked.look().first_use] == ["cli", "nightly", "weekly"]
    assert not is_first_look(looked.pins, [])


def test_a_first_look_that_finds_all_pinned_is_the_first_nevertheless() -> None:
    """Or whatever is planted afterwards would be pinned as first seen."""
    looked = Ledger(written=[workflow()], pins=[pin_of(workflow(), How.FIRST_VERIFY)])
    assert [pin.how for pin in looked.look().first_use] == [How.FIRST_USE]
    looked.written = [workflow(), killer()]
    assert [proposal.name for proposal in looked.look().proposed] == ["cli"]


def test_a_first_look_that_finds_only_what_differs_is_the_first_nevertheless() -> None:
    looked = Ledger(written=[workflow(max_age=120)], pins=[pin_of(workflow(), How.FIRST_VERIFY)])
    decision = looked.look()
    assert (decision.in_force, decision.first_use) == ((workflow(),), ())
    assert [proposal.name for proposal in decision.proposed] == ["nightly"]
    looked.written = [workflow(max_age=120), killer()]
    assert [proposal.name for proposal in looked.look().proposed] == ["cli"]


def test_many_that_are_new_at_once_are_all_asked_about() -> None:
    """Also when some of them have been answered."""
    looked = ledger(workflow())
    flood = [source(f"s{number}") for number in range(MOST_UNASKED + 1)]
    looked.written = [workflow(), *flood]
    decision = looked.look()
    assert (decision.first_use, len(decision.proposed)) == ((), len(flood))
    for state in (APPROVED, REJECTED):
        looked.answer(state)
        decision = looked.look()
        assert (decision.first_use, decision.proposed) == ((), ())
    looked = ledger(workflow())
    looked.written = [workflow(), *flood[1:]]
    assert len(looked.look().first_use) == MOST_UNASKED


def test_no_look_is_the_first_where_there_may_be_pins_that_cannot_be_read() -> None:
    decision = decide([workflow(), killer()], [], [], NOW, is_all=False)
    assert [pin.name for pin in decision.first_use] == ["nightly"]
    assert [each.name for each in decision.proposed] == ["cli"]


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (source(), False),
        (source(killer="cli"), True),
        (DRY, False),
        (workflow(), False),
        (killer(), True),
        (killer("signal", ProcessSpec(match="agent")), True),
        (workflow(argv=("/bin/check",)), True),
        (gone(workflow()), False),
    ],
)
def test_whatever_runs_a_program_or_signals_or_has_that_done_needs_approval(
    entry: Entry, *, expected: bool
) -> None:
    assert needs_approval(entry) is expected


# ── changes ───────────────────────────────────────────────────────────────────────────────────────


def test_a_changed_entry_changes_nothing_until_it_is_approved() -> None:
    looked = ledger(workflow())
    looked.written = [workflow(max_age=1e6)]
    decision = looked.look()
    assert decision.in_force == (workflow(),)
    assert [each.entry for each in decision.proposed] == [encoded(workflow(max_age=1e6).spec)]
    looked.answer(APPROVED)
    assert looked.look() == Decision(in_force=(workflow(max_age=1e6),))


def test_a_vanished_entry_stays_in_force_until_its_removal_is_approved() -> None:
    looked = ledger(workflow(), source())
    looked.written = [source()]
    decision = looked.look()
    assert names(decision) == ["nightly", "main"]
    assert [(each.name, each.entry, each.hash) for each in decision.proposed] == [
        ("nightly", None, hash_of(None))
    ]
    looked.answer(APPROVED)
    assert looked.look() == Decision(in_force=(source(),))


def test_what_nobody_has_approved_goes_with_the_file_as_it_came() -> None:
    """A planted entry, that is, but none that was there at the first look."""
    looked = ledger(workflow(), source())
    looked.written = [workflow(), source(), source("planted")]
    assert [pin.name for pin in looked.look().first_use] == ["planted"]
    looked.pins.append(pin_of(workflow("verified"), How.FIRST_VERIFY))
    looked.written = [source()]
    decision = looked.look()
    assert [(pin.name, pin.entry) for pin in decision.let_go] == [("planted", None), ("verified", None)]
    assert [each.name for each in decision.proposed] == ["nightly"]
    assert names(looked.look()) == ["nightly", "main"]
    looked.written = [workflow(), source(), source("planted")]
    assert [pin.name for pin in looked.look().first_use] == ["planted"]


def test_what_differs_from_the_file_and_goes_with_it_is_asked_no_longer() -> None:
    looked = ledger(workflow())
    looked.written = [workflow(), workflow("weekly")]
    looked.look()
    looked.written = [workflow(), workflow("weekly", max_age=120)]
    looked.look()
    looked.written = [workflow()]
    decision = looked.look()
    assert [pin.name for pin in decision.let_go] == ["weekly"]
    assert [(each.name, each.state) for each in decision.withdrawn] == [("weekly", WITHDRAWN)]
    assert looked.look() == Decision(in_force=(workflow(),))


def test_what_was_removed_and_comes_back_is_new() -> None:
    """And so comes last."""
    looked = ledger(killer(), source())
    looked.written = [source()]
    looked.look()
    looked.answer(APPROVED)
    looked.look()
    looked.written = [killer(), source()]
    decision = looked.look()
    assert (names(decision), [each.name for each in decision.proposed]) == (["main"], ["cli"])
    looked.answer(APPROVED)
    assert names(looked.look()) == ["main", "cli"]


def test_a_killer_is_asked_before_what_names_it_and_its_removal_after() -> None:
    """Whoever answers in the order of the messages leaves no source without one."""
    looked = ledger(source(killer="cli"), workflow(), killer("cli"))
    looked.written = [workflow(max_age=120), source(killer="cli2"), killer("cli2")]
    assert [each.name for each in looked.look().proposed] == ["cli2", "nightly", "main", "cli"]


def test_a_renamed_entry_is_one_that_vanished_and_a_new_one() -> None:
    looked = ledger(workflow("nightly"))
    looked.written = [workflow("weekly")]
    decision = looked.look()
    assert names(decision) == ["nightly", "weekly"]
    assert [(each.name, each.entry) for each in decision.proposed] == [("nightly", None)]


def test_a_file_that_changes_again_is_asked_about_anew() -> None:
    looked = ledger(workflow())
    looked.written = [workflow(max_age=120)]
    looked.look()
    looked.written = [workflow(max_age=240)]
    decision = looked.look()
    assert [(each.id, each.state, each.decided_at) for each in decision.withdrawn] == [(1, WITHDRAWN, NOW)]
    assert [each.entry for each in decision.proposed] == [encoded(workflow(max_age=240).spec)]


def test_a_file_that_returns_to_what_is_in_force_withdraws_what_was_asked() -> None:
    looked = ledger(workflow())
    looked.written = [workflow(max_age=120)]
    looked.look()
    looked.written = [workflow()]
    decision = looked.look()
    assert [(each.id, each.state) for each in decision.withdrawn] == [(1, WITHDRAWN)]
    assert decision.proposed == ()
    assert looked.look() == Decision(in_force=(workflow(),))


def test_what_waited_and_vanished_is_withdrawn() -> None:
    looked = ledger(source())
    looked.written = [source(), killer()]
    looked.look()
    looked.written = [source()]
    assert [(each.name, each.state) for each in looked.look().withdrawn] == [("cli", WITHDRAWN)]
    assert looked.look() == Decision(in_force=(source(),))


def test_what_was_rejected_is_not_asked_again() -> None:
    looked = ledger(workflow())
    looked.written = [workflow(max_age=120)]
    looked.look()
    looked.answer(REJECTED)
    assert looked.look() == Decision(in_force=(workflow(),))


def test_after_a_rejection_a_third_thing_is_asked_and_what_was_rejected_too() -> None:
    looked = ledger(workflow())
    for max_age in (120, 240, 120):
        looked.written = [workflow(max_age=max_age)]
        decision = looked.look()
        assert [each.entry for each in decision.proposed] == [encoded(workflow(max_age=max_age).spec)]
        assert decision.withdrawn == ()
        looked.answer(REJECTED)


def test_what_was_rejected_is_asked_again_once_the_file_has_returned() -> None:
    looked = ledger(workflow())
    looked.written = [workflow(max_age=120)]
    looked.look()
    looked.answer(REJECTED)
    looked.written = [workflow()]
    (over,) = looked.look().withdrawn
    assert (over.state, over.decided_by, over.decided_at) == (WITHDRAWN, USER, NOW)
    looked.written = [workflow(max_age=120)]
    assert len(looked.look().proposed) == 1


def test_a_file_that_is_wrong_changes_nothing() -> None:
    looked = ledger(workflow(), source())
    looked.written = [workflow(max_age=120)]
    looked.look()
    looked.written = None
    assert looked.look() == Decision(in_force=(workflow(), source()))


def test_an_entry_of_another_kind_is_another_entry() -> None:
    looked = ledger(workflow("main"))
    looked.written = [source("main"), workflow("main")]
    assert looked.look().in_force == (workflow("main"), source("main"))


def test_the_order_is_that_of_approval_whatever_the_files_is() -> None:
    """Nobody takes a file from a source by writing another one before it."""
    looked = ledger(source("a"), source("b"))
    looked.written = [source("thief"), source("b", killer="cli"), source("a")]
    assert names(looked.look()) == ["a", "b", "thief"]
    looked.answer(APPROVED)
    assert names(looked.look()) == ["a", "b", "thief"]


def test_a_field_that_a_later_release_has_added_is_no_change() -> None:
    """It has its default where a pin does not say it."""
    looked = ledger(source())
    older = '{"name":"main","path":"/log/main"}'
    looked.pins = [replace(looked.pins[0], entry=older, hash=hash_of(older))]
    assert looked.look() == Decision(in_force=(source(),))


# ── rows that others have altered ─────────────────────────────────────────────────────────────────


ALTERED: Final[dict[str, Callable[[Pin], Pin]]] = {
    "its entry": lambda pin: replace(pin, entry=encoded(workflow(max_age=1e9).spec)),
    "its removal": lambda pin: replace(pin, entry=None),
    "written by another release": lambda pin: replace(pin, entry='{"new":1}', hash=hash_of('{"new":1}')),
    "no JSON": lambda pin: replace(pin, entry="{", hash=hash_of("{")),
}


@pytest.mark.parametrize("how", ALTERED)
def test_an_altered_pin_is_not_used_but_the_one_before_it(how: str) -> None:
    looked = ledger(workflow(max_age=120))
    looked.written = [workflow()]
    looked.look()
    looked.answer(APPROVED)
    looked.pins[-1] = ALTERED[how](looked.pins[-1])
    decision = decide([workflow(max_age=120)], looked.pins, looked.newest(), NOW)
    assert decision == Decision(in_force=(workflow(max_age=120),), altered=(looked.pins[-1],))


@pytest.mark.parametrize("how", ALTERED)
def test_an_entry_of_which_every_pin_is_altered_is_not_pinned_as_if_it_were_new(how: str) -> None:
    looked = ledger(workflow())
    looked.pins[-1] = ALTERED[how](looked.pins[-1])
    decision = decide([workflow()], looked.pins, [], NOW)
    assert (decision.in_force, decision.first_use) == ((), ())
    assert [each.name for each in decision.proposed] == ["nightly"]
    assert decision.altered == tuple(looked.pins)


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (
            source(),
            msgspec.structs.replace(source(), spec=SourceSpec(name="main", format="nope", path="/log/main")),
        ),
        (killer(spec=ProcessSpec(match="agent")), killer(spec=ProcessSpec(match="("))),
    ],
    ids=["format", "pattern"],
)
def test_a_pin_that_cannot_be_put_in_force_is_not_used_but_the_one_before_it(good: Entry, bad: Entry) -> None:
    """Whatever its hash: it would keep the bot from starting."""
    pins = [pin_of(good), pin_of(bad, How.APPROVED, USER)]
    assert decide([good], pins, [], NOW) == Decision(in_force=(good,), altered=(pins[1],))


def test_what_nobody_has_approved_takes_the_place_of_nothing() -> None:
    """Who empties the table for a moment has `loopwarden verify` pin what he likes, and not in place of what comes back."""
    pins = [pin_of(workflow()), pin_of(workflow(max_age=1e6), How.FIRST_VERIFY)]
    assert pins_in_force(pins) == (pins[0],)
    pins = [pin_of(workflow(), How.APPROVED, USER), pin_of(gone(workflow()))]
    assert pins_in_force(pins) == (pins[0],)


def test_what_is_approved_after_an_altered_pin_ends_the_matter() -> None:
    altered = replace(pin_of(workflow()), entry=encoded(workflow(max_age=1e9).spec))
    pins = [altered, pin_of(workflow(max_age=120), How.APPROVED, USER)]
    assert decide([workflow(max_age=120)], pins, [], NOW) == Decision(in_force=(workflow(max_age=120),))


def test_an_altered_proposal_is_withdrawn_and_made_again() -> None:
    looked = ledger(workflow())
    looked.written = [workflow(max_age=120)]
    looked.look()
    looked.save(replace(looked.proposals[0], entry=encoded(workflow(max_age=1e9).spec)))
    decision = looked.look()
    assert [each.state for each in decision.withdrawn] == [WITHDRAWN]
    assert [each.entry for each in decision.proposed] == [encoded(workflow(max_age=120).spec)]


# ── laws ──────────────────────────────────────────────────────────────────────────────────────────


@st.composite
def written(draw: st.DrawFn) -> list[Entry] | None:
    """What the file says at a time: some of a few entries, in any order, each in one of a few versions."""
    ages = st.sampled_from([60.0, 120.0])
    argvs = st.sampled_from([(), ("/bin/check",)])
    killers: tuple[Spec, ...] = (DryRunSpec(), CommandSpec(argv=("a",)), CommandSpec(argv=("b",)))
    entries = [
        workflow("nightly", max_age=draw(ages), argv=draw(argvs)),
        source("main", killer=draw(st.sampled_from([None, "cli"]))),
        source("second"),
        killer("cli", draw(st.sampled_from(killers))),
    ]
    return draw(st.none() | st.lists(st.sampled_from(entries), unique_by=lambda each: each.name))


STEPS: Final = st.lists(written() | st.sampled_from([APPROVED, REJECTED]), max_size=12)


@given(STEPS)
def test_whatever_the_file_says_and_people_answer(steps: list[list[Entry] | ProposalState | None]) -> None:
    """Only what was approved or first used is in force, nothing pinned is lost, and of each entry one proposal is open.

    And as long as nothing changes there is nothing to do.
    """
    looked = Ledger()
    for step in steps:
        looked.now += 1
        if isinstance(step, ProposalState):
            if any(each.state is OPEN for each in looked.proposals):
                looked.answer(step)
        else:
            looked.written = step
        looked.look()
        again = looked.look()
        assert again == Decision(in_force=again.in_force)


@given(STEPS, st.data())
def test_after_the_first_look_nothing_that_acts_comes_into_force_by_itself(
    steps: list[list[Entry] | ProposalState | None], data: st.DataObject
) -> None:
    looked = ledger(source("second"))
    for step in steps:
        if not isinstance(step, ProposalState):
            looked.written = step
        elif data.draw(st.booleans()) and any(each.state is OPEN for each in looked.proposals):
            looked.answer(step)
        decision = looked.look()
        first = dict(map(keyed, decision.first_use))
        assert not any(
            needs_approval(entry) for entry in decision.in_force if (entry.kind, entry.name) in first
        )
        acting = [entry for entry in decision.in_force if needs_approval(entry)]
        approved = [keyed(pin) for pin in looked.pins if pin.by == USER]
        assert all(((entry.kind, entry.name), entry.spec) in approved for entry in acting)
