"""The HTTP interface: validate, store, wake a worker, read. No model runs here."""
