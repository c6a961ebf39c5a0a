"""Verbs that check: doctor, and the private server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import typer

from worker.cli.connecting import read_settings
from worker.cli.errors import ExitCode, reported
from worker.cli.output import Json, print_json, print_table, print_text

if TYPE_CHECKING:
    from scheduler.health import Finding
    from scheduler.settings import Settings

_SIGNS = {"ok": "ok", "warning": "!", "problem": "PROBLEM"}


def register(app: typer.Typer) -> None:
    """Adds the verbs."""
    app.command()(reported(doctor))
    redis = typer.Typer(
        help="The private server, used without PAWL_REDIS_URL.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    redis.command()(reported(status))
    redis.command()(reported(stop))
    app.add_typer(redis, name="redis")


def doctor(as_json: Json = False) -> int:
    """Say what is wrong, and what to do.

    Exit code 1 if there is a problem, 3 if Redis cannot be reached.

    \b
    Examples:
      pawl doctor
      pawl doctor --json | jq -r 'select(.level == "problem") | .advice'
    """
    from agent.errors import StoreUnavailable  # noqa: PLC0415
    from scheduler.health import Finding  # noqa: PLC0415

    found = list(_of_this_machine())
    unreachable = False
    try:
        found += asyncio.run(_of_the_deployment(read_settings()))
    except StoreUnavailable as error:
        unreachable = True
        found.append(Finding("redis", "problem", str(error), "see PAWL_REDIS_URL, and whether the server runs"))
    if as_json:
        for finding in found:
            print_json(finding)
    else:
        print_table(
            ("CHECK", "", "FOUND", "WHAT TO DO"),
            [(finding.check, _SIGNS[finding.level], finding.what, finding.advice) for finding in found],
        )
    if unreachable:
        return ExitCode.UNREACHABLE
    return ExitCode.FAILED if any(finding.level == "problem" for finding in found) else ExitCode.OK


def status(as_json: Json = False) -> int:
    """Show the private server of the data folder.

    \b
    Example:
      pawl redis status
    """
    from scheduler import embedded  # noqa: PLC0415

    settings = read_settings()
    server = embedded.status(settings)
    if as_json:
        print_json({"running": server is not None, "server": server})
    elif server is None:
        print_text(f"no private server runs for {settings.data_dir}; the next command that needs one starts it")
    else:
        print_text(f"{server.software}, process {server.process_id}\n{server.url}\n{server.folder}")
    return ExitCode.OK


def stop(as_json: Json = False) -> int:
    """End the private server of the data folder, whoever uses it. The runs stay on disk.

    \b
    Example:
      pawl redis stop
    """
    from scheduler import embedded  # noqa: PLC0415

    stopped = embedded.stop(read_settings())
    if as_json:
        print_json({"stopped": stopped})
    else:
        print_text("stopped; the runs stay on disk" if stopped else "no private server runs")
    return ExitCode.OK


async def _of_the_deployment(settings: Settings) -> list[Finding]:
    from scheduler.deployment import Deployment  # noqa: PLC0415
    from scheduler.health import Finding, findings  # noqa: PLC0415
    from scheduler.store import Store  # noqa: PLC0415
    from scheduler.vitals import read_vitals  # noqa: PLC0415

    deployment = await asyncio.to_thread(Deployment, settings)
    redis = deployment.connect()
    try:
        vitals = await read_vitals(redis, Store(redis, deployment.scripts))
        where = "PAWL_REDIS_URL" if settings.redis_url else f"a private server, in {settings.data_dir}"
        return [Finding("redis", "ok", f"reachable: {where}"), *findings(vitals)]
    finally:
        await redis.aclose()
        deployment.close()


def _of_this_machine() -> list[Finding]:
    from importlib.metadata import version  # noqa: PLC0415

    from scheduler.health import Finding  # noqa: PLC0415
    from scheduler.records import SCHEMA  # noqa: PLC0415
    from worker.loading import PACKAGES, hiding_file  # noqa: PLC0415

    versions = f"pawl {version('pawl-agents')}, record schema {SCHEMA}, rq {version('rq')}, redis-py {version('redis')}"
    found = [Finding("pawl", "ok", versions)]
    if not version("rq").startswith("3."):
        found.append(Finding("rq", "problem", f"rq {version('rq')} is installed", "pip install 'rq>=3.0,<4'"))
    for name in PACKAGES:
        if file := hiding_file(name):
            words = f"{file} has the name of one of Pawl's packages: programs started here would import it instead"
            found.append(Finding("names", "problem", words, f"rename {file.name}"))
    return found
