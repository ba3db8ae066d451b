"""The scheduler: one leading process runs the steps of settings.SCHEDULER_STEPS.

Flow: `loop` holds the `leader` lease and runs steps; `due` opens polls and `other_tasks` all other tasks, within the
`limits` of each source; `hint` sends them to the workers; `recover`, `upkeep` and `retention` do the rest. `clock`
corrects times after the machine's clock was set back.
"""
