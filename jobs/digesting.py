"""The database -> a digest: what was counted and noted of a week, or of several up to now."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from jobs.digest.compose import LOOKED_BACK, Noted, Span, alarms_of, compose, rate_of
from jobs.digest.digest import Away, Digest, PinChange, StoppedLoop, Tested, WeekRate
from jobs.digest.figures import Figures, by_workflow, sum_of
from jobs.digest.week import last_ended, shifted, slot, weeks_up_to
from jobs.pinning.kind import Kind
from jobs.pinning.pin import Pin, spec_of
from jobs.ports import DigestTables, Stop, absence_of
from jobs.thrash.incident import Incident
from jobs.verification.drift import Alarm
from jobs.verification.spec import WorkflowSpec

_NONE: Final = Figures()
_TESTED_BEFORE: Final = 3600
"""Seconds before its slot in which the self-tests for a digest are done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digesting:
    """Composes digests. `every`: the seconds between two looks of the bot."""

    tables: DigestTables
    zone: tzinfo
    every: float

    async def of_week(self, week: str, now: float) -> tuple[Mapping[str, Figures], Digest]:
        """Return the digest of a week that is over, and its figures, by week; those of all weeks before are kept.

        With those of the week before: since it was told, runs that were missing may have come.
        """
        span = Span(week=week, since=await self.start_of(week), until=slot(week, self.zone))
        fresh = {each: await self.counted(each) for each in (shifted(week, -1), week)}
        return fresh, await self._composed(span, fresh[week], fresh, now)

    async def of_last(self, weeks: int, now: float) -> Digest:
        """Return the digest of so many weeks up to now, of which the last one is still going on.

        Of fewer, if there were none yet of which anything is known.
        """
        fresh = await self.not_kept(now)
        begun = await self._first_known(fresh)
        wanted = [week for week in weeks_up_to(max(fresh), weeks) if week >= begun]
        since = await self.start_of(wanted[0])
        span = Span(week=wanted[-1], since=since, until=now, weeks=len(wanted), is_asked=True)
        known = {**await self.tables.counts.kept(wanted[0], wanted[-1]), **fresh}
        figures = sum_of(known.get(week, _NONE) for week in wanted)
        return await self._composed(span, figures, fresh, now)

    async def not_kept(self, now: float) -> Mapping[str, Figures]:
        """Return the figures of the week that was told last, and of all since, by week."""
        newest = await self.tables.digests.newest_week(now)
        first_at = await self.tables.counts.first_at()
        current = shifted(last_ended(now, self.zone), 1)
        if newest and newest.week:
            first = newest.week
        else:
            first = current if first_at is None else shifted(last_ended(first_at, self.zone), 1)
        weeks = [week for week in weeks_up_to(max(first, current), LOOKED_BACK) if week >= first]
        return {week: await self.counted(week) for week in weeks}

    async def _first_known(self, fresh: Mapping[str, Figures]) -> str:
        """Return the first week in which a run was counted, or something was pinned."""
        kept = [rate.week for rate in await self.tables.counts.rates()]
        counted = [week for week, figures in fresh.items() if figures.runs]
        pinned = [shifted(last_ended(pin.at, self.zone), 1) for pin in (await self.tables.pins.all())[:1]]
        return min([max(fresh), *kept, *counted, *pinned])

    async def start_of(self, week: str) -> float:
        """Return when a week began: where the one before has ended, in whatever zone that was."""
        before = shifted(week, -1)
        told = await self.tables.digests.of_week(before)
        return told.until if told else slot(before, self.zone)

    async def counted(self, week: str) -> Figures:
        """Count the runs of a week anew."""
        return await self.tables.counts.between(
            await self.start_of(week), await self.start_of(shifted(week, 1))
        )

    async def _composed(
        self, span: Span, figures: Figures, fresh: Mapping[str, Figures], now: float
    ) -> Digest:
        watched = _workflows(await self.tables.pins.in_force())
        pins = await self.tables.pins.all()
        names = {run.workflow for run in figures.runs} | watched.keys()
        return compose(
            span,
            figures,
            rates=await self._rates(span, fresh),
            alarms=await self._alarms(span, fresh, names, self._watched_since(pins, watched)),
            noted=await self._noted(span, watched, pins, now),
        )

    async def _rates(self, span: Span, fresh: Mapping[str, Figures]) -> Sequence[WeekRate]:
        kept = {rate.week: rate for rate in await self.tables.counts.rates()}
        known = kept | {
            week: rate_of(week, figures)
            for week, figures in fresh.items()
            # Of a time before all that is known there is no rate.
            if figures.runs or week == span.week
        }
        return [known[week] for week in sorted(known) if week <= span.week]

    def _watched_since(self, pins: Sequence[Pin], watched: Collection[str]) -> Mapping[str, str]:
        """Return the week in which each workflow in force came under watch; `pins`: all there ever were, oldest first."""
        since: dict[str, float] = {}
        for pin in pins:
            if pin.kind is not Kind.WORKFLOW:
                continue
            if pin.entry is None:
                since.pop(pin.name, None)
            else:
                since.setdefault(pin.name, pin.at)
        return {name: shifted(last_ended(at, self.zone), 1) for name, at in since.items() if name in watched}

    async def _alarms(
        self, span: Span, fresh: Mapping[str, Figures], names: Iterable[str], since: Mapping[str, str]
    ) -> Sequence[Alarm]:
        parts = {week: by_workflow(figures) for week, figures in fresh.items()}
        first, last = shifted(span.week, 2 - span.weeks - LOOKED_BACK), shifted(span.week, -1)
        alarms: list[Alarm] = []
        for name in sorted(names):
            history = {**await self.tables.counts.history(name, first, last)}
            history |= {week: part[name] for week, part in parts.items() if name in part}
            alarms += alarms_of(name, history, span, watched_since=since.get(name))
        return alarms

    async def _noted(
        self, span: Span, watched: Mapping[str, WorkflowSpec], pins: Sequence[Pin], now: float
    ) -> Noted:
        tests = await self.tables.selftests.latest()
        # Those for the digest of the week before are the newest ones of a week that goes on.
        tested_since = await self.start_of(span.week) - (_TESTED_BEFORE if span.is_asked else 0)
        begun_at = await self.tables.digests.begun_at()
        return Noted(
            selftests=tuple(
                Tested(workflow=name, at=test.at, made_of=test.made_of, trials=test.result)
                for name, test in sorted(tests.items())
                if name in watched
            ),
            untested=tuple(
                name for name in sorted(watched) if name not in tests or tests[name].at < tested_since
            ),
            stops=await self._stops(span),
            pins=tuple(change for change in _changes(pins) if span.since <= change.at < span.until),
            absences=await self._absences(span, now),
            commands=tuple(sorted(name for name, spec in watched.items() if spec.command)),
            is_watched=begun_at is not None and begun_at <= span.since,
        )

    async def _stops(self, span: Span) -> tuple[StoppedLoop, ...]:
        found = []
        for stop in await self.tables.stops.held(span.since, span.until):
            incident = await self.tables.incidents.get(stop.incident_id or 0)
            if incident:
                found.append(_stopped(stop, incident))
        return tuple(found)

    async def _absences(self, span: Span, now: float) -> tuple[Away, ...]:
        found = list(await self.tables.absences.between(span.since, span.until))
        # Nobody has looked yet since the bot is back.
        still = absence_of(await self.tables.presence.last(), now, self.every)
        if still and still.since < span.until:
            found.append(still)
        return tuple(Away(since=each.since, until=each.until) for each in found)


def _workflows(pins: Sequence[Pin]) -> dict[str, WorkflowSpec]:
    return {pin.name: spec for pin in pins if isinstance(spec := spec_of(pin), WorkflowSpec)}


def _changes(pins: Sequence[Pin]) -> Iterator[PinChange]:
    """Yield every change of what is in force; `pins`: all there ever were, oldest first."""
    before: dict[tuple[Kind, str], str] = {}
    for pin in pins:
        after = "" if pin.entry is None else pin.hash
        yield PinChange(
            at=pin.at,
            kind=pin.kind,
            name=pin.name,
            how=pin.how,
            by=pin.by,
            before=before.get((pin.kind, pin.name), ""),
            after=after,
        )
        before[pin.kind, pin.name] = after


def _stopped(stop: Stop, incident: Incident) -> StoppedLoop:
    return StoppedLoop(
        at=stop.finished_at or stop.ordered_at,
        agent=incident.agent,
        source=incident.source,
        incident=incident.id,
        ordered_by=stop.ordered_by,
        tool=incident.tool,
        kind=incident.kind,
        score=incident.score,
        calls=incident.calls,
        span=incident.newest_ts - incident.first_ts,
        tokens=incident.tokens,
        cost=incident.cost,
        currency=incident.currency,
        is_cost_part=incident.unpriced > 0,
    )
