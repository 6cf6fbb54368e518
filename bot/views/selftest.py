"""Self-tests of the verifier."""

from typing import Final

from aiogram.utils.formatting import Bold, Code, Text

from bot.views.measure import plural
from bot.views.screen import Screen, lines, screen
from bot.views.text import flat, name
from jobs.alert.selftest_notice import SelftestNotice
from jobs.verification.trial import MadeOf, Trial

_SHOWN: Final = 10


def survived(notice: SelftestNotice) -> Screen:
    """Say what the verifier has let pass."""
    result = notice.result
    more = len(result.survivors) - _SHOWN
    made_of = "its last good output" if notice.made_of is MadeOf.OUTPUT else "an output made up for it"
    return screen(
        lines(
            Bold("🧪 The verifier does not notice every bad output"),
            Text(
                *("Workflow ", name(notice.workflow), f": of {made_of}, {plural(result.total, 'bad one')} "),
                f"were made on purpose, and {len(result.survivors)} not detected.",
            ),
            *map(_survivor, result.survivors[:_SHOWN]),
            f"… and {more} more" if more > 0 else None,
            "Until that is mended, a run that is bad in this way counts as delivered. `loopwarden selftest` tries again.",
        )
    )


def _survivor(trial: Trial) -> Text:
    mutant, found = Code(flat(trial.mutant, 100)), Code(flat(trial.found, 200))
    return Text("• ", mutant, ", which the check ", Bold(trial.check), " should have caught: ", found)
