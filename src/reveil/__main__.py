"""`python -m reveil` is the command line."""

from reveil.cli import main

main()
