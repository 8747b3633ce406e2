def order(needs):
    """All tasks, needed ones first, ties by name. `needs` maps a task to the tasks that it needs."""
    ready = []
    while len(ready) < len(needs):
        free = [task for task in sorted(needs) if task not in ready and all(n in ready for n in needs[task])]
        if not free:
            raise Cycle(sorted(needs))
        ready.extend(free)
    return ready
