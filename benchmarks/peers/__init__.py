"""The programs that VictoryLine is compared with, each in an environment of its own."""
