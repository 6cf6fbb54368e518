"""Has a workflow's good output made bad in every way, and judged, in a process of its own."""

from collections.abc import Sequence
from typing import Final

import msgspec

from jobs.artifacts.apart import Bounded, Limits, answered, lines_of
from jobs.program.environment import own_module
from jobs.verification.spec import WorkflowSpec
from jobs.verification.trial import GoodOutput, MadeOf, Trial, Trials

_ARGV: Final = own_module("jobs.artifacts.trial_child")
LIMITS: Final = Limits(seconds=120.0)


class TrialRequest(Bounded, frozen=True, kw_only=True):
    """What the process is told; `now` is when an output is made up."""

    good: bytes | None
    """The bytes of the file; None: there is no good output."""
    path: str = ""
    """Where it was. Never opened."""
    mtime_ns: int = 0
    judged_as_of: float = 0


class TrialWord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of what it answers: first what is made bad, then each mutant, at last that these were all."""

    made_of: MadeOf | None = None
    trouble: str = ""
    trial: Trial | None = None
    is_all: bool = False


class ApartTester:
    """Reads nothing but the copy that is kept, and writes to no file system."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._limits = limits

    def test(self, spec: WorkflowSpec, good: GoodOutput | None, now: float) -> tuple[MadeOf, Trials]:
        """Try every mutant of the good output, or of one made up. Never raises, takes bounded time and memory."""
        try:
            answer, why = answered(_ARGV, self._request(spec, good, now))
        except OSError as error:
            return MadeOf.NOTHING, Trials(trouble=f"no process can be started: {error.strerror}")
        except (OverflowError, ValueError) as error:
            return MadeOf.NOTHING, Trials(trouble=f"no process can be told what to try: {error}")
        return _summed_up(list(lines_of(answer, TrialWord)), why)

    def _request(self, spec: WorkflowSpec, good: GoodOutput | None, now: float) -> TrialRequest:
        request = TrialRequest(
            spec=spec, now=now, seconds=self._limits.seconds, memory=self._limits.memory, good=None
        )
        if good is None:
            return request
        return msgspec.structs.replace(
            request, good=good.data, path=good.path, mtime_ns=good.mtime_ns, judged_as_of=good.judged_as_of
        )


def _summed_up(words: Sequence[TrialWord], why: str) -> tuple[MadeOf, Trials]:
    start = next((word for word in words if word.made_of), TrialWord(made_of=MadeOf.NOTHING))
    trials = [word.trial for word in words if word.trial]
    is_all = any(word.is_all for word in words)
    return start.made_of or MadeOf.NOTHING, Trials(
        detected=sum(trial.is_detected for trial in trials),
        survivors=tuple(trial for trial in trials if not trial.is_detected),
        trouble=start.trouble if is_all else f"not all could be judged{why}",
    )
