"""Numbers to labels: tests, intervals, roles and verdicts; nothing here needs torch."""
