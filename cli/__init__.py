"""The command line `halldetect`: audits in one process, the embedded stack, and the client."""
