EXPLAIN ANALYZE SELECT unnest(range(3)), 'x' || $$y$$ FROM attempts -- c
