"""The commands that talk to a running service over HTTP: submit, status, results, cancel."""
