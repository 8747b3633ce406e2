def order(needs):
    """All tasks, needed ones first, ties by name. `needs` maps a task to the tasks that it needs."""
    waiting = {task: set(needed) for task, needed in needs.items()}
    for needed in needs.values():
        for task in needed:
            waiting.setdefault(task, set())
    ready = []
    while waiting:
        free = sorted(task for task, needed in waiting.items() if not needed - set(ready))
        if not free:
            raise Cycle(sorted(waiting))
        ready += free
        for task in free:
            del waiting[task]
    return ready
