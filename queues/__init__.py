"""What the API and the workers must agree on: queues, tasks, and how they are woken."""
