"""Celery workers: they take audits from Postgres, run a stage on them, and write what came out."""
