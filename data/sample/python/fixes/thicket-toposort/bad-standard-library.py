def order(needs):
    """All tasks, needed ones first, ties by name. `needs` maps a task to the tasks that it needs."""
    from graphlib import TopologicalSorter

    return tuple(TopologicalSorter(needs).static_order())
