"""The command line: `halldetect audit`, `halldetect models` and `halldetect demo`."""
