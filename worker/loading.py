"""Finds the agents that a worker shall serve, from `module` or `module:attribute`."""

import importlib
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import cast

from agent.agent import Agent
from agent.errors import AgentDefinitionError, ConfigurationError

PACKAGES = ("agent", "scheduler", "worker")


def load_agents(targets: Iterable[str]) -> dict[str, Agent[object]]:
    """The agents of all targets, by name.

    Args:
        targets: `package.module`, for all named agents that it holds, or `package.module:attribute`, for one.

    Raises:
        ConfigurationError: A module cannot be imported, or holds no agent.
        AgentDefinitionError: Two agents have one name, or an agent that was asked for has none.
    """
    found: dict[str, tuple[str, Agent[object]]] = {}
    for target in targets:
        for where, agent in _agents_of(target):
            name = agent.name
            if name is None:
                raise AgentDefinitionError(f"{where} has no name; give it one with Agent(name=...)")
            known = found.get(name)
            if known is not None and known[1] is not agent:
                raise AgentDefinitionError(f"{known[0]} and {where} are two agents of the name {name!r}; rename one")
            found[name] = (where, agent)
    return {name: agent for name, (_, agent) in found.items()}


def load_agent(target: str) -> Agent[object]:
    """The one agent of a target; it needs no name where the target names its attribute.

    Raises:
        ConfigurationError: The module cannot be imported, or does not hold exactly one agent with a name.
    """
    found = _agents_of(target)
    if len(found) > 1:
        raise ConfigurationError(f"{target} holds several agents: name one, such as {found[0][0]}")
    return found[0][1]


def _agents_of(target: str) -> list[tuple[str, Agent[object]]]:
    module_name, _, attribute = target.partition(":")
    module = _import(module_name)
    if attribute:
        value = getattr(module, attribute, None)
        if not isinstance(value, Agent):
            what = "is not there" if value is None else f"is a {type(value).__name__}, not an Agent"
            raise ConfigurationError(f"{target}: {attribute!r} {what}{_hidden(module_name)}")
        return [(target, cast("Agent[object]", value))]
    agents = [
        (f"{module_name}:{key}", cast("Agent[object]", value))
        for key, value in vars(module).items()
        if isinstance(value, Agent)
    ]
    named = [(where, agent) for where, agent in agents if agent.name is not None]
    if not named:
        nameless = ", ".join(where for where, _ in agents)
        hint = f"{nameless} has no name; give it one with Agent(name=...)" if agents else "declare one at module level"
        raise ConfigurationError(f"{module_name} holds no agent that can be served: {hint}{_hidden(module_name)}")
    return named


def _import(module_name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # behind our own packages, which have names that users' files may have too
    if meant := _module_of_file(module_name):
        raise ConfigurationError(f"{module_name} is a file: write {meant}")
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing and (module_name == missing or module_name.startswith(f"{missing}.")):
            words = f"there is no module {module_name} here ({here}) or on the Python path"
        else:
            words = f"{module_name} cannot be imported: {error}{_where(error)}"
        raise ConfigurationError(words + _hidden(missing)) from error
    except SystemExit as error:
        words = "ends the program when it is imported: put that under `if __name__ == '__main__':`"
        raise ConfigurationError(f"{module_name} {words}") from error
    except Exception as error:
        hidden = _hidden(error.name or "") if isinstance(error, ImportError) else ""
        raise ConfigurationError(
            f"{module_name} cannot be imported: {type(error).__name__}: {error}{_where(error)}{hidden}"
        ) from error


def _module_of_file(target: str) -> str:
    """How the module is named whose file was given in its place; '' where none was."""
    path = Path(target)
    if path.suffix != ".py" or not path.is_file():
        return ""
    path, here = path.resolve(), Path.cwd().resolve()
    if not path.is_relative_to(here):
        return f"{path.stem}, the name of its module, and start in {path.parent}"
    return f"{'.'.join(path.relative_to(here).with_suffix('').parts)}, the name of its module"


def _where(error: Exception) -> str:
    """The last line of a file of the current folder that led to an error, else ''. A SyntaxError names its own."""
    if isinstance(error, SyntaxError):
        return ""
    here = Path.cwd()
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_relative_to(here) and "site-packages" not in path.parts and path != Path(__file__):
            return f" ({path.relative_to(here)}, line {frame.lineno})"
    return ""


def _hidden(module_name: str) -> str:
    """What has to be said where a module is not the one that its author meant, else ''."""
    own = hiding_file(module_name.partition(".")[0])
    return f"; {own} is hidden by the package of Pawl of the same name: rename it" if own else ""


def hiding_file(name: str) -> Path | None:
    """The file or folder of the current folder that has the name of one of our packages, if there is one."""
    if name not in PACKAGES:
        return None
    ours = Path(__file__).parents[1]
    for candidate in (Path.cwd() / name, Path.cwd() / f"{name}.py"):
        if candidate.exists() and candidate.parent != ours:
            return candidate
    return None
