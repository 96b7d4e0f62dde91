SELECT coalesce(sum(ncell), 0), count(*) FROM dbstat WHERE name = ?1 AND pagetype = 'leaf'
