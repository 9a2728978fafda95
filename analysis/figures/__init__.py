"""Drawing that several papers share."""
