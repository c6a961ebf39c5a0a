"""What an agent is: tools, the step machine, budgets, models. Knows nothing of Redis."""
