"""Tasks in an order in which each comes after what it needs."""


class Cycle(ValueError):
    """Tasks that wait for each other."""


def order(needs):
    """All tasks, needed ones first, ties by name. `needs` maps a task to the tasks that it needs."""
    ready = []
    visiting = set()

    def visit(task):
        if task in visiting:
            raise Cycle(task)
        visiting.add(task)
        for needed in sorted(needs.get(task, ())):
            visit(needed)
        ready.append(task)

    for task in sorted(needs):
        if task not in ready:
            visit(task)
    return ready
