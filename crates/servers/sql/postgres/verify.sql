SELECT count(*), count(*) FILTER (WHERE ctid::text LIKE '%,1)') FROM {table}
