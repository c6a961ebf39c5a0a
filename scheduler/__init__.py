"""What happens to a run: the record in Redis, admission, delivery, recovery and the client."""
