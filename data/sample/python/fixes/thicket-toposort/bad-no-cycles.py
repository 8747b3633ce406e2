def order(needs):
    """All tasks, needed ones first, ties by name. `needs` maps a task to the tasks that it needs."""
    ready = []
    visited = set()

    def visit(task):
        if task in visited:
            return
        visited.add(task)
        for needed in sorted(needs.get(task, ())):
            visit(needed)
        ready.append(task)

    for task in sorted(needs):
        visit(task)
    return ready
