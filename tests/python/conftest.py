"""What tests of the package have: `pytester`, which runs pytest in a process of its own."""

pytest_plugins = ["pytester"]
