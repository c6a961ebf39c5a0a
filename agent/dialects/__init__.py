"""Dialects: what a model's reply means, and what a request must hold so that it means it. One file each."""
