-- Privileges on the whole database that let a user see its tables, triggers and routines.
SELECT coalesce(sum(PRIVILEGE_TYPE = 'SELECT'), 0), coalesce(sum(PRIVILEGE_TYPE = 'TRIGGER'), 0),
    coalesce(sum(PRIVILEGE_TYPE = 'EXECUTE'), 0)
FROM (
    SELECT PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES UNION ALL
    SELECT PRIVILEGE_TYPE FROM information_schema.SCHEMA_PRIVILEGES
    WHERE DATABASE() LIKE TABLE_SCHEMA
) p
