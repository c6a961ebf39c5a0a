"""Verbs that make steps: worker, scheduler, run, demo."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from worker.cli.connecting import configured
from worker.cli.errors import ExitCode, complain, reported
from worker.cli.limits import Given, with_limits
from worker.cli.looking import print_cards
from worker.cli.output import Json, console, print_json, print_text, say
from worker.cli.submitting import print_output, read_task

if TYPE_CHECKING:
    from agent.agent import Agent
    from agent.errors import RunWaiting
    from agent.report import StepReport
    from scheduler.deployment import Deployment
    from worker.service import WorkerOptions

Queues = Annotated[str, typer.Option(help="RQ queues with commas, the most urgent first. Default: see above.")]


def register(app: typer.Typer) -> None:
    """Adds the verbs."""
    for verb in (worker, scheduler, demo):
        app.command()(reported(verb))
    app.command()(reported(with_limits(run)))


def worker(
    *,
    targets: Annotated[list[str], typer.Argument(help="package.module, or package.module:attribute for one agent.")],
    queues: Queues = "",
    concurrency: Annotated[int, typer.Option(min=1, help="Runs that a process moves at once.")] = 500,
    processes: Annotated[int, typer.Option(min=1, help="Processes; a parent keeps them where there are several.")] = 1,
    grace: Annotated[float, typer.Option(min=0, help="Seconds for runs to finish a step at SIGTERM.")] = 20.0,
    burst: Annotated[bool, typer.Option("--burst", help="End when the queues are empty.")] = False,
    max_steps_per_activation: Annotated[
        int | None, typer.Option(min=1, help="Give a run back after so many steps, even if nobody waits.")
    ] = None,
    name: Annotated[
        str, typer.Option(help="Its name in RQ; unique, for one process. Default: host, process and a random word.")
    ] = "",
    mark: Annotated[str, typer.Option(hidden=True)] = "",
    parent: Annotated[int, typer.Option(hidden=True)] = 0,
    as_json: Json = False,
) -> int:
    """Start a worker, which moves the runs of its agents.

    It prints its agents, takes their runs from RQ's queues, and moves hundreds of them at once.

    The queues are `high`, those of the agents, and `low`. At SIGTERM or Ctrl-C what does not finish is handed over;
    said twice, it ends at once. The log goes to stderr, a line for each step.

    \b
    Examples:
      pawl worker myapp.agents
      pawl worker myapp.agents:support --processes 2 --concurrency 500
      pawl worker myapp.agents --queues high,default --burst
    """
    if name and processes > 1:
        raise typer.BadParameter("a name belongs to one process: leave out --processes, or --name", param_hint="--name")
    from scheduler.cards import AgentCard  # noqa: PLC0415
    from scheduler.deployment import Deployment  # noqa: PLC0415
    from worker.loading import load_agents  # noqa: PLC0415
    from worker.service import WorkerOptions, serve  # noqa: PLC0415

    settings = configured()
    agents = load_agents(targets)
    cards = [AgentCard.of(agent) for agent in agents.values()]
    if not parent:
        print_cards(cards, as_json=as_json)
        sys.stdout.flush()
        _warn_of_models(agents)
    options = WorkerOptions(
        queues=_names(queues),
        concurrency=concurrency,
        grace=grace,
        max_steps=max_steps_per_activation,
        burst=burst,
        name=name,
        mark=mark,
        parent=parent,
    )
    deployment = Deployment(settings)
    try:
        if processes > 1:
            return _keep(deployment, targets, options, processes)
        _serve(serve(agents, deployment, options))
    finally:
        deployment.close()
    return _end_at_once()


def scheduler(queues: Queues = "") -> int:
    """Start a scheduler, which mends what nobody looks after.

    It finds lost leases, lost rings and waits that are over, and keeps RQ's books.

    Workers do so too; a scheduler goes on where there is no worker. Any number may run. The queues whose books it keeps
    are those that RQ knows.

    \b
    Example:
      pawl scheduler
    """
    from scheduler.deployment import Deployment  # noqa: PLC0415
    from scheduler.service import sweep_until_told  # noqa: PLC0415

    deployment = Deployment(configured())
    try:
        asyncio.run(sweep_until_told(deployment, _names(queues)))
    finally:
        deployment.close()
    return ExitCode.OK


def run(
    *,
    limits: Given,
    target: Annotated[str, typer.Argument(help="package.module:attribute, or a module with one agent.")],
    task: Annotated[str | None, typer.Argument(help="The task; - or nothing: read from stdin.")] = None,
    as_json: Json = False,
) -> int:
    """Run an agent here and now, without Redis.

    Progress goes to stderr, the result to stdout. A run that asks a person ends here: submit it, or chat.

    \b
    Examples:
      pawl run myapp.agents:support "Refund order 7"
      pawl run myapp.agents:support - --max-steps 5 --json < task.txt
    """
    from agent.budget import Budget  # noqa: PLC0415
    from agent.errors import RunError, RunWaiting  # noqa: PLC0415
    from scheduler.log import configure  # noqa: PLC0415
    from worker.loading import load_agent  # noqa: PLC0415

    configure(level="warning")
    words = read_task(task)
    agent = load_agent(target)
    budget = Budget.model_validate(agent.budget.model_dump() | limits)
    try:
        result = asyncio.run(agent.run(words, budget=budget, observer=None if as_json else _Progress()))
    except RunError as caught:
        error = _asking(caught, agent.name or "AGENT") if isinstance(caught, RunWaiting) else caught
        if as_json:
            print_json({"run": error.run_id, "error": str(error), "partial": error.partial})
        raise error from None
    if as_json:
        usage = {**asdict(result.usage), "cost_usd": result.usage.cost_usd}
        print_json({"run": result.run_id, "output": result.output, "steps": result.steps, "usage": usage})
    else:
        print_output(agent.output.to_json(result.output) if agent.output else result.output)
    return ExitCode.OK


def demo(
    runs: Annotated[int, typer.Option(min=1, help="How many runs.")] = 20,
    processes: Annotated[int, typer.Option(min=2, help="How many worker processes.")] = 2,
    as_json: Json = False,
) -> int:
    """See it work, with one worker killed half-way.

    \b
    Examples:
      pawl demo
      pawl demo --json | tail -n 1
    """
    from scheduler.log import configure  # noqa: PLC0415
    from worker.demo import DemoOptions, run_demo  # noqa: PLC0415
    from worker.demo.screen import LiveScreen, PlainScreen, SilentScreen  # noqa: PLC0415

    configure(level="error")
    options = DemoOptions(runs=runs, processes=processes)
    if as_json:
        print_text(asyncio.run(run_demo(options, SilentScreen())).as_json())
        return ExitCode.OK
    if console().is_terminal:
        with LiveScreen(console()) as screen:
            summary = asyncio.run(run_demo(options, screen))
    else:
        summary = asyncio.run(run_demo(options, PlainScreen(console())))
    figures = asdict(summary)
    look_at = figures.pop("look_at")
    for name, value in figures.items():
        print_text(f"{name.replace('_', ' '):<21} {value}")
    command = "pawl" if which("pawl") else "./dev pawl"
    print_text(
        f"\nLook next at:  {command} show {look_at}\n               {command} runs\n               {command} usage"
    )
    return ExitCode.OK


def _warn_of_models(agents: Mapping[str, Agent[Any]]) -> None:
    """Says which agents have a model that cannot be asked, before the first run of theirs fails for it."""
    from agent.errors import ModelRefusedRequest  # noqa: PLC0415
    from agent.models.openai import OpenAIModel  # noqa: PLC0415

    for name, agent in agents.items():
        model = agent.program().model
        if isinstance(model, OpenAIModel):
            try:
                model.check()
            except ModelRefusedRequest as error:
                complain(f"agent {name!r} cannot ask its model {model.name}, and its runs will fail: {error}")


def _asking(waiting: RunWaiting, agent: str) -> RunWaiting:
    """The same with advice for the command line, in place of that for code."""
    from agent.errors import RunWaiting  # noqa: PLC0415

    asks = f"run {waiting.run_id} asks: {'; '.join(waiting.questions)}"
    advice = (
        f"nobody can answer here: with a worker, `pawl submit {agent} ...` and then `pawl reply RUN TEXT` or `pawl approve RUN`, "
        f"or `pawl chat {agent}`"
    )
    return RunWaiting(
        f"{asks} ({advice})", run_id=waiting.run_id, requests=waiting.requests, questions=waiting.questions
    )


class _Progress:
    """Says each step on stderr."""

    def step(self, report: StepReport) -> None:
        """A step, or an attempt at it, is over."""
        tools = ", ".join(f"{tool.name}: {tool.outcome}" for tool in report.tools)
        tokens = f"{report.input_tokens} + {report.output_tokens} tokens"
        parts = (report.outcome, tools, report.error, tokens, report.model)
        say(f"step {report.step}  " + "  ".join(part for part in parts if part))


def _serve(work: Coroutine[Any, Any, None]) -> None:
    """Serves until the work is over. What a tool left behind on the event loop can end the loop under it (`sys.exit` in a task
    of its own, `loop.stop()`). The process then dies as in any other crash, which counts as one for its runs: handed over in
    good order, a run that does so each time would go on for ever.
    """
    from agent.text import words_of  # noqa: PLC0415

    at_work = True

    async def to_its_end() -> None:
        nonlocal at_work
        try:
            await work
        finally:
            at_work = False

    with asyncio.Runner() as runner:
        try:
            runner.run(to_its_end())
        except BaseException as error:
            if not at_work:
                raise
            complain(f"the event loop was ended from within: {words_of(error)}")
            _end_at_once(ExitCode.FAILED)


def _end_at_once(code: ExitCode = ExitCode.OK) -> NoReturn:
    """A thread cannot be stopped: a tool that still sits in one must not hold up the end of the process."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # a tool may have closed it
            stream.flush()
    os._exit(code)


def _keep(deployment: Deployment, targets: Sequence[str], options: WorkerOptions, processes: int) -> int:
    """The parent of several worker processes."""
    from worker.processes import Processes  # noqa: PLC0415

    keeper = Processes(_child_command(targets, options), processes, deployment, grace=options.grace)
    return asyncio.run(keeper.run())


def _child_command(targets: Sequence[str], options: WorkerOptions) -> Callable[[str], list[str]]:
    """`pawl worker` with the same options, under a mark of its own; our packages come first in it too."""
    start = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); from worker.cli import main; main()"
    arguments = [
        *targets,
        *(f"--queues={','.join(options.queues)}", f"--concurrency={options.concurrency}", f"--grace={options.grace}"),
        *(["--burst"] if options.burst else []),
        *([f"--max-steps-per-activation={options.max_steps}"] if options.max_steps else []),
        f"--parent={os.getpid()}",
    ]
    return lambda mark: [sys.executable, "-P", "-c", start, "worker", *arguments, f"--mark={mark}"]


def _names(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip())]
