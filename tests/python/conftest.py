"""Gives the tests of the package `pytester`, which runs pytest in a separate process."""

pytest_plugins = ["pytester"]
