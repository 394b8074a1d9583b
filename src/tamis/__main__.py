"""``python -m tamis`` is the command `tamis`."""

from tamis.cli.main import main

main(prog_name="tamis")
