"""Every screen about pins, whatever stands in a watch list or a database."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from aiogram.filters.callback_data import CallbackData
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import structs

from bot.callbacks import AuditButton, PinButton, PinVerb
from bot.views import pin, workflow
from bot.views.audit import SHOWN, AuditPage, audit
from bot.views.differing import Differing
from bot.views.screen import Screen
from jobs.alert.pin_notice import (
    MOST_IN_ONE,
    AlteredNotice,
    FirstUseNotice,
    LetGoNotice,
    Pinned,
    ProposalNotice,
)
from jobs.pinning.audit import Audited
from jobs.pinning.change import Change, Mark
from jobs.pinning.kind import How, Kind, ProposalState
from jobs.pinning.pin import Pin, Proposal, hash_of
from tests.bot.drawn_pins import audits, differing, proposal_notices
from tests.bot.hostile import INVISIBLE
from tests.bot.safety import LARGEST_ID, NOW, UTC_ZONE, assert_safe, few, foreign

DAY = 86_400
LOOSER = Change(field="max_age", before="30 min", after="1 d", mark=Mark.LOOSER)
DIFFERENT = Change(field="timestamp", before="made_at", after="at", mark=Mark.DIFFERENT)
STRICTER = Change(field="required", before="", after="total", mark=Mark.STRICTER)
CHANGED = ProposalNotice(
    proposal=12,
    kind=Kind.WORKFLOW,
    name="nightly",
    changes=(LOOSER, DIFFERENT, STRICTER),
    in_force_since=NOW - DAY,
)
NEW = ProposalNotice(
    proposal=13,
    kind=Kind.KILLER,
    name="stopper",
    is_new=True,
    changes=(Change(field="argv", before="", after="./stop.sh {session}", mark=Mark.STRICTER),),
    not_pinned=("{session}, which is another one each time",),
)
GONE = structs.replace(
    CHANGED,
    is_gone=True,
    changes=(Change(field="required", before="total", after="", mark=Mark.LOOSER),),
)
APPROVED = ProposalState.APPROVED
REJECTED = ProposalState.REJECTED
WITHDRAWN = ProposalState.WITHDRAWN


def shown_of(notice: ProposalNotice, page: int = 0) -> Screen:
    return pin.proposal(notice, NOW, UTC_ZONE, page)


def lines(shown: Screen) -> list[str]:
    return shown.text.splitlines()


def labels(shown: Screen) -> list[str]:
    rows = shown.keyboard.inline_keyboard if shown.keyboard else []
    return [button.text for row in rows for button in row]


def marked(shown: Screen, kind: str) -> list[str]:
    """Return what stands in this type."""
    text = shown.text.encode("utf-16-le")
    return [
        text[2 * entity.offset : 2 * (entity.offset + entity.length)].decode("utf-16-le")
        for entity in shown.entities
        if entity.type == kind
    ]


def some(count: int) -> tuple[Change, ...]:
    return tuple(structs.replace(LOOSER, field=f"fields.f{number}.max") for number in range(count))


# ── a proposal ────────────────────────────────────────────────────────────────────────────────────


def test_a_change_is_shown_field_by_field_with_what_it_does_to_the_bar() -> None:
    shown = shown_of(CHANGED)
    assert lines(shown) == [
        "📌 The file differs: workflow nightly",
        "What was pinned is in force since 2100-04-30 12:00, and stays so until an admin approves this:",
        "max_age: 30 min → 1 d  looser",
        "timestamp: made_at → at  different",
        "required: nothing → total  stricter",
    ]
    assert labels(shown) == ["Approve", "Reject"]
    assert marked(shown, "bold")[1:] == ["looser"]
    assert marked(shown, "italic") == ["different", "stricter"]


@pytest.mark.parametrize(
    ("notice", "said"),
    [
        (
            NEW,
            [
                "📌 New in the file: killer stopper",
                "It is not in force until an admin approves it.",
                "argv: ./stop.sh {session}",
                "Not pinned: {session}, which is another one each time",
            ],
        ),
        (
            GONE,
            [
                "📌 No longer in the file: workflow nightly",
                "What was pinned is in force since 2100-04-30 12:00, and stays so until an admin approves its removal:",
                "required: total → nothing  looser",
            ],
        ),
    ],
    ids=["new", "gone"],
)
def test_a_new_entry_and_one_that_is_gone_are_told_as_such(notice: ProposalNotice, said: list[str]) -> None:
    shown = shown_of(notice)
    assert lines(shown) == said
    assert labels(shown) == ["Approve", "Reject"]


@pytest.mark.parametrize(
    ("notice", "state", "said"),
    [
        (CHANGED, APPROVED, ["✅ Approved: workflow nightly by user 1", "It is in force now."]),
        (GONE, APPROVED, ["✅ Removed: workflow nightly by user 1", "It is no longer in force."]),
        (
            CHANGED,
            REJECTED,
            [
                "🚫 Rejected: workflow nightly by user 1",
                "What was pinned stays in force since 2100-04-30 12:00, and the file differs.",
            ],
        ),
        (
            NEW,
            REJECTED,
            ["🚫 Rejected: killer stopper by user 1", "It is not in force, though the file has it."],
        ),
        (
            GONE,
            REJECTED,
            [
                "🚫 Rejected: workflow nightly by user 1",
                "What was pinned stays in force since 2100-04-30 12:00, though the file does not have it.",
            ],
        ),
        (
            CHANGED,
            WITHDRAWN,
            [
                "↩️ Taken back: workflow nightly",
                "The file says again what is in force since 2100-04-30 12:00.",
            ],
        ),
        (NEW, WITHDRAWN, ["↩️ Taken back: killer stopper", "The file does not have it any more."]),
    ],
)
def test_what_became_of_it_is_said_and_only_what_was_rejected_can_still_be_approved(
    notice: ProposalNotice, state: ProposalState, said: list[str]
) -> None:
    decided_by = None if state is WITHDRAWN else 1
    shown = shown_of(structs.replace(notice, state=state, decided_by=decided_by))
    assert lines(shown)[:2] == said
    assert labels(shown) == (["Approve"] if state is REJECTED else [])
    assert (len(lines(shown)) > 2) == (state is not WITHDRAWN)


def test_what_a_killer_has_to_do_with_it_is_said_before_all_else() -> None:
    """One that waits for approval stops nothing; one that goes leaves others without."""
    source = structs.replace(CHANGED, kind=Kind.SOURCE, name="gateway", missing_killer="stopper2")
    assert lines(shown_of(source))[2] == (
        "⚠️ killer stopper2 is not in force: until it is, this source is only observed"
    )
    killer = structs.replace(NEW, missing_killer="hard")
    assert lines(shown_of(killer))[2] == (
        "⚠️ killer hard is not in force: until it is, no other killer follows a stop that did not hold"
    )
    users = ((Kind.SOURCE, "gateway"), (Kind.KILLER, "soft"))
    gone = structs.replace(GONE, kind=Kind.KILLER, name="stopper", used_by=users)
    assert lines(shown_of(gone))[2:4] == ["⚠️ source gateway uses it", "⚠️ killer soft uses it"]


def test_of_a_long_one_that_was_decided_it_is_said_how_much_there_was() -> None:
    shown = shown_of(structs.replace(CHANGED, changes=some(45), state=APPROVED, decided_by=1))
    assert shown.text.endswith("… and 25 more")


def test_what_is_too_much_to_be_shown_cannot_be_approved() -> None:
    """Unless it is gone: then nothing of it counts any more."""
    shown = shown_of(structs.replace(CHANGED, has_more=True))
    assert labels(shown) == ["Reject"]
    assert lines(shown)[-1].startswith("There is more than can be shown, so it cannot be approved")
    assert labels(shown_of(structs.replace(GONE, has_more=True))) == ["Approve", "Reject"]


def test_what_cannot_be_told_apart_by_eye_is_shown_as_it_is_written() -> None:
    hidden = Change(field="forbid", before="TODO", after="TO\u200bDO", mark=Mark.DIFFERENT)
    shown = shown_of(structs.replace(CHANGED, changes=(hidden,)))
    assert lines(shown)[-1] == r"forbid: TODO → 'TO\u200bDO'  different"


def test_two_secrets_are_told_to_differ_and_to_hide_something() -> None:
    """What is masked may be no secret at all."""
    one, other = ('curl -H "token: ' + letter * 20 + '"' for letter in "ab")
    change = Change(field="argv", before=one, after=other, mark=Mark.DIFFERENT)
    shown = shown_of(structs.replace(CHANGED, changes=(change,)))
    assert lines(shown)[-2:] == [
        """argv: 'curl -H "token: •••"' → 'curl -H "token: •••"' (differs in what is not shown)  different""",
        "••• is what looks like a secret, but may hide anything: look into the file before you approve.",
    ]
    new = shown_of(structs.replace(NEW, changes=(structs.replace(change, before=""),)))
    assert "•••" in lines(new)[-1]


values = st.text("ab \t🙂" + INVISIBLE, max_size=60) | st.sampled_from(["sk-" + "a" * 20, "sk-" + "b" * 20])


@given(values, values)
def test_two_values_that_differ_never_look_alike(before: str, after: str) -> None:
    assume(before != after and before and after)
    change = Change(field="forbid", before=before, after=after, mark=Mark.DIFFERENT)
    said = lines(shown_of(structs.replace(CHANGED, changes=(change,))))[2]
    found = re.fullmatch(r"forbid: (.*) → (.*?)( \(differs in what is not shown\))?  different", said)
    assert found
    assert found[1] != found[2] or found[3]


# ── its pages ─────────────────────────────────────────────────────────────────────────────────────


def pages(notice: ProposalNotice) -> list[Screen]:
    """Turn pages as a person does, from the first to the last."""
    shown = [shown_of(notice)]
    while any(label.startswith("More") for label in labels(shown[-1])):
        shown.append(shown_of(notice, len(shown)))
    return shown


def test_what_does_not_fit_is_turned_and_only_the_last_page_approves() -> None:
    first, second, third = pages(structs.replace(CHANGED, changes=some(60)))
    assert labels(first) == ["More 2/3", "Reject"]
    assert labels(second) == ["Back 1/3", "More 3/3", "Reject"]
    assert labels(third) == ["Back 2/3", "Approve", "Reject"]
    assert first.text.startswith("📌 The file differs: workflow nightly (1/3)\n")
    assert first.text.endswith("\nApprove stands on the last page.")


def test_what_gets_looser_is_counted_where_approve_stands() -> None:
    """Looser changes come first, and are on an earlier page than the button."""
    stricter = (STRICTER,) * 30
    *_, last = pages(structs.replace(CHANGED, changes=(LOOSER, LOOSER, DIFFERENT, *stricter)))
    assert lines(last)[2] == "In all 2 looser, 1 different, 30 stricter"
    assert "looser" in marked(last, "bold")
    new = pages(structs.replace(NEW, changes=some(30)))
    assert "In all" not in new[-1].text


def test_a_page_beyond_the_last_is_the_last() -> None:
    """The button may be older than the message is now."""
    assert shown_of(CHANGED, 7) == shown_of(CHANGED)


long_values = st.text("x→🙂", max_size=400)
many_changes = st.lists(
    st.builds(Change, field=long_values, before=long_values, after=long_values, mark=st.sampled_from(Mark)),
    max_size=70,
).map(lambda drawn: tuple(structs.replace(c, field=f"{n}!{c.field}") for n, c in enumerate(drawn)))


@few
@given(many_changes, st.lists(foreign, max_size=30).map(tuple))
def test_every_line_is_on_exactly_one_page_whole_and_approve_on_the_last(
    drawn: tuple[Change, ...], not_pinned: tuple[str, ...]
) -> None:
    notice = structs.replace(CHANGED, changes=drawn, not_pinned=not_pinned)
    shown = pages(notice)
    everything = [line for page in shown for line in lines(page)]
    rows = [row.render()[0] for row in pin.rows_of(notice)]
    assert [line for line in everything if line in rows] == rows
    assert [number for number, page in enumerate(shown) if "Approve" in labels(page)] == [len(shown) - 1]
    assert all("Reject" in labels(page) and len(page.entities) <= 100 for page in shown)
    for page in shown:
        assert_safe(page)


def test_what_was_rejected_has_pages_too_and_approve_on_the_last() -> None:
    """A wrong tap must not cost another edit of the file; and nobody approves what was not shown."""
    first, second = pages(structs.replace(CHANGED, changes=some(30), state=REJECTED, decided_by=1))
    assert lines(first)[0] == "🚫 Rejected: workflow nightly by user 1 (1/2)"
    assert labels(first) == ["More 2/2"]
    assert labels(second) == ["Back 1/2", "Approve"]


@few
@given(proposal_notices, st.integers(0, 9))
def test_every_page_of_a_proposal_is_safe(notice: ProposalNotice, page: int) -> None:
    assert_safe(shown_of(notice, page))


# ── at first sight, and altered ───────────────────────────────────────────────────────────────────


def test_what_was_pinned_at_first_sight_is_named_workflows_first_and_then_what_is_not_pinned() -> None:
    loose = ("pkill, which is found on the PATH", "{session}, which is another one each time")
    entries = (
        Pinned(kind=Kind.SOURCE, name="gateway"),
        Pinned(kind=Kind.KILLER, name="stopper", not_pinned=loose),
        Pinned(kind=Kind.KILLER, name="other"),
        Pinned(kind=Kind.WORKFLOW, name="nightly"),
    )
    assert pin.first_use(FirstUseNotice(entries=entries)).text.splitlines()[:-1] == [
        "📌 Pinned as they were found: 4 entries",
        "Workflow: nightly",
        "Source: gateway",
        "Killers: stopper, other",
        "Not pinned of killer stopper: pkill, which is found on the PATH; {session}, which is another one each time",
    ]


def test_what_loopwarden_verify_has_pinned_is_told_as_such() -> None:
    entries = (Pinned(kind=Kind.WORKFLOW, name="nightly"),)
    shown = pin.first_use(FirstUseNotice(entries=entries, how=How.FIRST_VERIFY))
    assert shown.text.startswith("📌 Pinned by loopwarden verify: 1 entry\nWorkflow: nightly\n")


def test_every_name_is_in_the_message_however_long_and_whatever_is_not_pinned() -> None:
    """Of that the first are told."""
    loose = tuple(f"{letter * 300}, which is another one each time" for letter in "abc")
    entries = [
        Pinned(kind=Kind.KILLER, name=f"{n:02}" + "k" * 60, not_pinned=loose) for n in range(MOST_IN_ONE)
    ]
    shown = pin.first_use(FirstUseNotice(entries=tuple(entries)))
    assert all(entry.name in lines(shown)[1] for entry in entries)
    assert lines(shown)[-2] == f"… and {MOST_IN_ONE - 8} more of which not all is pinned"
    assert lines(shown)[-1].endswith("/audit lists every pin.")
    assert len(shown.entities) <= 100


def test_what_is_pinned_for_want_of_what_was_approved_says_so() -> None:
    entries = (Pinned(kind=Kind.WORKFLOW, name="nightly"),)
    shown = pin.first_use(FirstUseNotice(entries=entries, is_lost=True))
    assert lines(shown)[1].startswith("⚠️ What was pinned before is in a database that cannot be read.")


def test_what_goes_with_the_file_is_named() -> None:
    entries = (Pinned(kind=Kind.SOURCE, name="planted"), Pinned(kind=Kind.SOURCE, name="other"))
    assert lines(pin.let_go(LetGoNotice(entries=entries)))[:2] == [
        "📌 No longer in the file, nor in force: 2 entries",
        "Sources: planted, other",
    ]


def test_pins_that_were_put_back_are_counted() -> None:
    notice = AlteredNotice(kind=Kind.WORKFLOW, name="nightly", others=2, is_put_back=True)
    assert lines(pin.altered(notice)) == [
        "🚨 A pin was altered in the database: workflow nightly, and 2 more",
        "What was approved stays in force, and was written back. See who can write to the database.",
    ]


def test_a_pin_that_was_altered_is_named() -> None:
    shown = pin.altered(AlteredNotice(kind=Kind.WORKFLOW, name="nightly"))
    assert shown.text.startswith("🚨 A pin was altered in the database: workflow nightly\n")


# ── /audit ────────────────────────────────────────────────────────────────────────────────────────

FIRST = Pin(
    id=1,
    kind=Kind.WORKFLOW,
    name="nightly",
    entry="{}",
    hash=hash_of("{}"),
    how=How.FIRST_USE,
    at=NOW - DAY,
)
SECOND = replace(FIRST, id=2, entry="[]", hash=hash_of("[]"), how=How.APPROVED, by=7, at=NOW)
REMOVAL = replace(SECOND, id=3, entry=None, hash=hash_of(None))
BY_HAND = replace(SECOND, id=4, by=None)
BY_VERIFY = replace(FIRST, how=How.FIRST_VERIFY)


def rows(found: Audited) -> list[str]:
    page = AuditPage(number=0, pins=[found], has_older=False)
    return audit(page, NOW, UTC_ZONE).text.splitlines()[1:]


@pytest.mark.parametrize(
    ("after", "before", "said"),
    [
        (
            FIRST,
            None,
            ["2100-04-30 12:00 workflow nightly: pinned as it was found", "    nothing → 44136fa3"],
        ),
        (
            BY_VERIFY,
            None,
            ["2100-04-30 12:00 workflow nightly: pinned by loopwarden verify", "    nothing → 44136fa3"],
        ),
        (SECOND, FIRST, ["12:00:00 workflow nightly: approved by user 7", "    44136fa3 → 4f53cda1"]),
        (
            REMOVAL,
            SECOND,
            ["12:00:00 workflow nightly: removal approved by user 7", "    4f53cda1 → nothing"],
        ),
        (
            BY_HAND,
            REMOVAL,
            ["12:00:00 workflow nightly: approved by loopwarden approve", "    nothing → 4f53cda1"],
        ),
    ],
    ids=["first use", "first verify", "approved", "removed", "by hand"],
)
def test_audit_says_of_a_pin_who_when_from_what_to_what(
    after: Pin, before: Pin | None, said: list[str]
) -> None:
    assert rows(Audited(pin=after, before=before, changes=())) == said


def test_audit_says_in_a_few_words_what_changed() -> None:
    found = Audited(pin=SECOND, before=FIRST, changes=(LOOSER, DIFFERENT, STRICTER, LOOSER, LOOSER))
    assert rows(found)[1] == (
        "    44136fa3 → 4f53cda1: max_age looser, timestamp different, required stricter and 2 more"
    )


def test_audit_says_of_a_pin_that_it_was_altered() -> None:
    found = Audited(pin=replace(SECOND, entry="{}"), before=FIRST, changes=())
    assert rows(found)[2] == "    🚨 altered since, and not used"


def differs(
    state: ProposalState, *, number: int = 12, entry: str | None = "{}", is_new: bool = False
) -> Differing:
    proposal = Proposal(
        id=number,
        kind=Kind.WORKFLOW,
        name="nightly",
        entry=entry,
        hash="",
        state=state,
        found_at=NOW,
    )
    return Differing(proposal=proposal, is_new=is_new)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (differs(ProposalState.OPEN), "the file differs from what is in force; it waits for approval"),
        (differs(REJECTED), "the file differs from what is in force; it was rejected"),
        (differs(ProposalState.OPEN, is_new=True), "new in the file, not in force; it waits for approval"),
        (differs(REJECTED, is_new=True), "new in the file, not in force; it was rejected"),
        (
            differs(ProposalState.OPEN, entry=None),
            "no longer in the file, still in force; its removal waits for approval",
        ),
        (differs(REJECTED, entry=None), "no longer in the file, still in force; its removal was rejected"),
    ],
)
def test_how_the_file_differs_is_said_in_a_line(found: Differing, said: str) -> None:
    shown = audit(AuditPage(number=0, pins=[], has_older=False, differing=[found]), NOW, UTC_ZONE)
    assert lines(shown) == [
        "Not as in the file",
        f"#12 workflow nightly: {said}",
        "Pins",
        "None so far.",
    ]
    assert labels(shown) == ["Show #12"]


def test_audit_has_room_for_so_many_that_differ_and_says_how_many_are_on_the_next_pages() -> None:
    many = [differs(ProposalState.OPEN, number=number) for number in range(1, SHOWN + 1)]
    page = AuditPage(number=0, pins=[], has_older=True, differing=many, more_differing=3)
    shown = audit(page, NOW, UTC_ZONE)
    assert lines(shown)[SHOWN + 1] == "… and 3 more: Older"
    assert labels(shown) == [*(f"Show #{number}" for number in range(1, SHOWN + 1)), "Older"]


@pytest.mark.parametrize(
    ("number", "has_older", "expected"),
    [(0, False, []), (0, True, ["Older"]), (1, True, ["Newer", "Older"]), (2, False, ["Newer"])],
)
def test_audit_is_turned(number: int, has_older: bool, expected: list[str]) -> None:
    page = AuditPage(number=number, pins=[], has_older=has_older)
    assert labels(audit(page, NOW, UTC_ZONE)) == expected


@few
@given(
    st.integers(0, 9),
    st.lists(audits, max_size=SHOWN),
    st.lists(differing, max_size=SHOWN),
    st.booleans(),
)
def test_a_page_of_the_audit_is_safe_and_shown_to_its_end(
    number: int, found: Sequence[Audited], others: Sequence[Differing], more: bool
) -> None:
    shown = audit(AuditPage(number=number, pins=found, has_older=more, differing=others), NOW, UTC_ZONE)
    assert_safe(shown)
    assert not shown.text.endswith("…")


def test_a_page_of_the_longest_names_is_shown_to_its_end() -> None:
    long = structs.replace(LOOSER, field="f" * 99)
    longest = Audited(pin=replace(SECOND, name="n" * 99, by=LARGEST_ID), before=FIRST, changes=(long,) * 5)
    altered = replace(longest, pin=replace(longest.pin, hash="h" * 64))
    other = differs(ProposalState.OPEN, number=LARGEST_ID, entry=None)
    other = replace(other, proposal=replace(other.proposal, name="n" * 99))
    page = AuditPage(
        number=0, pins=[altered] * SHOWN, has_older=True, differing=[other] * SHOWN, more_differing=9
    )
    shown = audit(page, NOW, UTC_ZONE)
    assert shown.text.endswith("altered since, and not used")
    assert len(shown.entities) <= 100


# ── elsewhere ─────────────────────────────────────────────────────────────────────────────────────


def test_the_list_of_workflows_names_those_that_are_not_in_force_yet() -> None:
    new = differs(ProposalState.OPEN, is_new=True)
    assert workflow.workflow_list([], NOW, UTC_ZONE, [new]).text.splitlines()[1] == (
        "📌 workflow nightly: new in the file, not in force; it waits for approval"
    )


@few
@given(st.lists(differing, min_size=1, max_size=9))
def test_the_entries_that_differ_are_named_safely(found: Sequence[Differing]) -> None:
    shown = workflow.workflow_list([], NOW, UTC_ZONE, found)
    assert_safe(shown)
    assert (f"and {len(found) - 5} more: /audit" in shown.text) == (len(found) > 5)


@pytest.mark.parametrize(
    "button",
    [
        *(PinButton(verb=verb, proposal=LARGEST_ID, page=2**31 - 1) for verb in PinVerb),
        AuditButton(page=2**31 - 1),
    ],
)
def test_every_button_has_room_for_the_largest_id(button: CallbackData) -> None:
    packed = button.pack()
    assert len(packed.encode()) <= 64
    assert type(button).unpack(packed) == button
