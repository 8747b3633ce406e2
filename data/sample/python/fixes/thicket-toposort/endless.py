def order(needs):
    """All tasks, needed ones first, ties by name. `needs` maps a task to the tasks that it needs."""
    tasks = set(needs) | {task for needed in needs.values() for task in needed}
    ready = []
    while len(ready) < len(tasks):
        for task in sorted(tasks - set(ready)):
            if all(needed in ready for needed in needs.get(task, ())):
                ready.append(task)
    return ready
