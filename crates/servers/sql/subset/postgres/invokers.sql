-- Routines that were loaded run with the rights of those who call them: their owner is another now.
DO $$ DECLARE routine text; BEGIN
FOR routine IN SELECT pg_catalog.format('%I.%I(%s)', n.nspname, p.proname,
        pg_catalog.pg_get_function_identity_arguments(p.oid))
    FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
        JOIN pg_catalog.pg_roles r ON r.oid = p.proowner
    WHERE p.prosecdef AND r.rolname = current_user AND p.oid >= 16384
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend d
            WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass
                AND d.objid = p.oid AND d.deptype = 'e')
LOOP EXECUTE 'ALTER ROUTINE ' || routine || ' SECURITY INVOKER'; END LOOP; END $$;
