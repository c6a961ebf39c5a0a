"""What holds in the store after every script, whatever was sent before."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from scheduler.keys import Keys, scoped
from scheduler.lifecycle import Status
from scheduler.records import RunRecord, parse_record
from tests.support.snapshot import Snapshot

Runs = Mapping[str, RunRecord]


def records(keys: Keys, snapshot: Snapshot) -> dict[str, RunRecord]:
    """All runs that a server holds."""
    prefix = keys.run("")
    names = [key.removeprefix(prefix) for key in snapshot.named(prefix)]
    return {run: parse_record(run, snapshot.hash(keys.run(run))) for run in names}


def check(keys: Keys, snapshot: Snapshot) -> None:
    """Raises AssertionError that lists all that does not hold."""
    runs = records(keys, snapshot)
    found = [problem for record in runs.values() for problem in _of_run(keys, snapshot, record)]
    found += _of_sessions(keys, snapshot, runs)
    found += _of_ledgers(keys, snapshot, runs)
    found += _of_indexes(keys, snapshot, runs)
    assert not found, "\n".join(found)


def _of_run(keys: Keys, snapshot: Snapshot, record: RunRecord) -> Iterator[str]:
    run, status = record.id, record.status
    queued, running, waiting = status is Status.QUEUED, status is Status.RUNNING, status is Status.WAITING
    due = snapshot.scores(keys.due).get(run)
    asks = [ask.split(b" ", 2) for ask in snapshot.hash(keys.asks(run)).values()]
    deadlines = [int(ask[1]) for ask in asks if ask[1:] and ask[1]]
    ids = [entry_id.decode() for entry_id, _ in snapshot.entries(keys.events(run))]
    bodies = Counter(fields[b"b"] for _, fields in snapshot.entries(keys.events(run)) if b'"once"' in fields[b"b"])
    own_keys = [
        *keys.family(run),
        *([keys.idem(scoped(record.tenant, key))] if (key := record.idempotency_key) else []),
    ]
    expiries = {key: snapshot.expiry(key) for key in own_keys if key in snapshot.keys}
    must_hold = {
        "queued => either due or behind": not queued or (due is not None) != record.behind,
        "behind => queued": queued or not record.behind,
        "running <=> leased": running == (run in snapshot.scores(keys.leases)),
        "running <=> token": running == bool(record.token),
        "running <=> worker": running == bool(record.worker),
        "hold => running": running or not record.hold,
        "due => queued, waiting or asking": queued or waiting or due is None or (running and bool(asks)),
        "waiting => inbox empty": not waiting or not snapshot.list(keys.inbox(run)),
        "waiting => not cancelled": not waiting or not record.cancel,
        "waiting or running => due at the first deadline": not ((waiting or running) and deadlines)
        or (due is not None and due <= min(deadlines)),
        "crashes are below their limits": record.ended or (record.crashes < 3 and record.crashes_total < 10),
        f"events 1..seq, but {ids}": ids == [f"{number}-0" for number in range(1, record.seq + 1)],
        f"no commit's events twice, but {bodies}": all(count == 1 for count in bodies.values()),
        f"one expiry, {record.expires_at}, but {expiries}": set(expiries.values()) == {record.expires_at or -1},
        "ended <=> expires": record.ended == (record.expires_at is not None),
    }
    return (f"{run} ({status}): {name}" for name, holds in must_hold.items() if not holds)


def _of_sessions(keys: Keys, snapshot: Snapshot, runs: Runs) -> Iterator[str]:
    by_session: defaultdict[str, list[RunRecord]] = defaultdict(list)
    for record in runs.values():
        if record.session:
            by_session[scoped(record.tenant, record.session)].append(record)
    for session, members in by_session.items():
        live = [record for record in members if not record.ended]
        first = [record.id for record in live if not record.behind]
        active = snapshot.text(keys.session(session), "active")
        line = [run.decode() for run in snapshot.list(keys.next(session))]
        if first != ([active] if active else []):
            yield f"session {session}: active is {active!r}, but {first} stand behind nobody"
        if live and not active:
            yield f"session {session}: nobody is active, but {[record.id for record in live]} live"
        if sorted(line) != sorted(record.id for record in live if record.behind):
            yield f"session {session}: the line {line} is not those who stand behind"
        if keys.session(session) in snapshot.keys and (snapshot.expiry(keys.session(session)) == -1) != bool(active):
            yield f"session {session}: a session expires if and only if it is free"
        began = {record.id for record in members if record.fence and not record.forgotten}
        told = [run.decode() for run in snapshot.list(keys.begun(session))]
        if not began <= set(told) or len(told) != len(set(told)):
            yield f"session {session}: it remembers {told}, but {began} have begun"
        if rolled_back := {record.id for record in members if record.forgotten} & set(told):
            yield f"session {session}: it remembers {rolled_back}, which are rolled back"
        if told and snapshot.expiry(keys.begun(session)) != snapshot.expiry(keys.session(session)):
            yield f"session {session}: it does not expire together with its memory"
    sessions = snapshot.scores(keys.sessions)
    for tenant in {session.partition(":")[0] for session in sessions} - {""}:
        own = {session: at for session, at in sessions.items() if session.startswith(f"{tenant}:")}
        if snapshot.scores(keys.sessions_of(tenant)) != own:
            yield f"tenant {tenant} does not have the sessions {own}"
    if missing := set(by_session) - set(sessions):
        yield f"the sessions {missing} cannot be found"


def _of_ledgers(keys: Keys, snapshot: Snapshot, runs: Runs) -> Iterator[str]:
    held: Counter[tuple[str, bytes]] = Counter()
    for record in runs.values():
        for hold in record.hold:
            held[hold.ledger, b"held:" + hold.field.encode()] += hold.amount
    for ledger in snapshot.named(keys.tenant("").key):
        for field, value in snapshot.hash(ledger).items():
            if field.startswith(b"held:") and int(value) != held[ledger, field]:
                yield f"{ledger} has {field} {value}, its runs {held[ledger, field]}"


def _of_indexes(keys: Keys, snapshot: Snapshot, runs: Runs) -> Iterator[str]:
    expected: defaultdict[str, set[str]] = defaultdict(set)
    for run, record in runs.items():
        expected[keys.by_status(record.status)].add(run)
        expected[keys.by_time].add(run)
        expected[keys.by_agent(record.agent)].add(run)
        if record.tenant:
            expected[keys.by_tenant(record.tenant)].add(run)
        if record.session:
            expected[keys.by_session(scoped(record.tenant, record.session))].add(run)
    found = {key: set(snapshot.scores(key)) for key in snapshot.named(f"{keys.prefix}:by-")}
    if found != expected:
        yield f"the indexes hold {found}, not {dict(expected)}"
    expiring = [(member.partition("\n")[0], at) for member, at in snapshot.scores(keys.expiring).items()]
    if sorted(expiring) != sorted((run, record.expires_at) for run, record in runs.items() if record.ended):
        yield f"{expiring} are to expire, not all ended runs once"
    for key in (keys.leases, keys.due, keys.mirror):
        if strangers := set(snapshot.scores(key)) - set(runs):
            yield f"{key} has {strangers}, which are no runs"
