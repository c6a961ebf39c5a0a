"""Clients of language models, one file each. See `agent.models.base` for what they have in common."""
