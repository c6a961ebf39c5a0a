"""The names and shapes of the documents that Pawl grew from, over the same engine: nothing here is a second loop.

- `agent.documents.game`: an agent as goal, actions, memory and environment.
- `agent.documents.react`: an agent for a model that only writes text.
- `agent.documents.runtime`: sessions, runs, events and checkpoints.

Where a name means here what it means in `agent` (Goal, Tool, ActionRegistry, tool, ...), it is the same object. Where the
shape differs (Agent, Message, Environment, Memory, ...), the one here is thin, and `docs/documents.md` says what it becomes.
"""
