"""The database -> a digest: what was counted and noted of a week, or of several up to now."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from jobs.digest.compose import LOOKED_BACK, Noted, Span, alarms_of, compose, rate_of
from jobs.digest.digest import Away, Digest, PinChange, StoppedLoop, Tested, WeekRate
from jobs.digest.figures import Figures, by_workflow, sum_of
from jobs.digest.week import last_ended, shifted, slot, weeks_up_to
from jobs.pinning.kind import Kind
from jobs.pinning.pin import Pin, decoded
from jobs.ports import DigestTables, Stop, absence_of
from jobs.thrash.incident import Incident
from jobs.verification.drift import Alarm
from jobs.verification.spec import WorkflowSpec

_NONE: Final = Figures()


@dataclass(frozen=True, slots=True, kw_only=True)
class Digesting:
    """Composes digests. `every`: the seconds between two looks of the bot."""

    tables: DigestTables
    zone: tzinfo
    every: float

    async def of_week(self, week: str, now: float) -> tuple[Figures, Digest]:
        """Return the figures of a week that is over, and its digest; those of all weeks before are kept."""
        span = Span(week=week, since=await self.start_of(week), until=slot(week, self.zone))
        figures = await self.tables.counts.between(span.since, span.until)
        return figures, await self._composed(span, figures, {week: figures}, now)

    async def of_last(self, weeks: int, now: float) -> Digest:
        """Return the digest of so many weeks up to now, of which the last one is still going on."""
        fresh = await self.not_kept(now)
        wanted = weeks_up_to(max(fresh), weeks)
        span = Span(week=wanted[-1], since=await self.start_of(wanted[0]), until=now, is_asked=True)
        known = {**await self.tables.counts.kept(wanted[0], wanted[-1]), **fresh}
        figures = sum_of(known.get(week, _NONE) for week in wanted)
        return await self._composed(span, figures, fresh, now)

    async def not_kept(self, now: float) -> Mapping[str, Figures]:
        """Return the figures of the weeks that are not told yet, by week: at least those of the one that goes on."""
        newest = await self.tables.digests.newest_week(now)
        first_at = await self.tables.counts.first_at()
        current = shifted(last_ended(now, self.zone), 1)
        if newest and newest.week:
            first = shifted(newest.week, 1)
        else:
            first = current if first_at is None else shifted(last_ended(first_at, self.zone), 1)
        weeks = [week for week in weeks_up_to(max(first, current), LOOKED_BACK) if week >= first]
        return {week: await self._counted(week) for week in weeks}

    async def start_of(self, week: str) -> float:
        """Return when a week began: where the one before has ended, in whatever zone that was."""
        before = shifted(week, -1)
        told = await self.tables.digests.of_week(before)
        return told.until if told else slot(before, self.zone)

    async def _counted(self, week: str) -> Figures:
        return await self.tables.counts.between(await self.start_of(week), slot(week, self.zone))

    async def _composed(
        self, span: Span, figures: Figures, fresh: Mapping[str, Figures], now: float
    ) -> Digest:
        watched = _workflows(await self.tables.pins.in_force())
        return compose(
            span,
            figures,
            rates=await self._rates(span, fresh),
            alarms=await self._alarms(span, fresh, watched),
            noted=await self._noted(span, watched, now),
            now=now,
        )

    async def _rates(self, span: Span, fresh: Mapping[str, Figures]) -> Sequence[WeekRate]:
        kept = {rate.week: rate for rate in await self.tables.counts.rates()}
        known = kept | {week: rate_of(week, figures) for week, figures in fresh.items()}
        return [known[week] for week in sorted(known) if week <= span.week]

    async def _alarms(
        self, span: Span, fresh: Mapping[str, Figures], watched: Mapping[str, WorkflowSpec]
    ) -> Sequence[Alarm]:
        parts = {week: by_workflow(figures) for week, figures in fresh.items()}
        first, last = shifted(span.week, 1 - LOOKED_BACK), shifted(span.week, -1)
        alarms: list[Alarm] = []
        for name in sorted(parts[span.week].keys() | watched.keys()):
            history = {**await self.tables.counts.history(name, first, last)}
            history |= {week: part[name] for week, part in parts.items() if name in part}
            alarms += alarms_of(name, history, span, is_watched=name in watched)
        return alarms

    async def _noted(self, span: Span, watched: Mapping[str, WorkflowSpec], now: float) -> Noted:
        tests = await self.tables.selftests.latest()
        pins = await self.tables.pins.all()
        return Noted(
            selftests=tuple(
                Tested(workflow=name, at=test.at, made_of=test.made_of, trials=test.result)
                for name, test in sorted(tests.items())
                if name in watched
            ),
            stops=await self._stops(span),
            pins=tuple(change for change in _changes(pins) if span.since <= change.at < span.until),
            absences=await self._absences(span, now),
            commands=tuple(sorted(name for name, spec in watched.items() if spec.command)),
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
    specs = {
        pin.name: decoded(pin.kind, pin.entry)
        for pin in pins
        if pin.kind is Kind.WORKFLOW and pin.entry is not None
    }
    return {name: spec for name, spec in specs.items() if isinstance(spec, WorkflowSpec)}


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
