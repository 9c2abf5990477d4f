-- The role that analysts' logins are members of. Roles belong to the server, not to one database:
-- another database of ours may have made it already, or be making it now.

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'halldetect_reader') THEN
        CREATE ROLE halldetect_reader NOLOGIN;
    END IF;
EXCEPTION
    WHEN duplicate_object OR unique_violation THEN
        NULL;
    WHEN insufficient_privilege THEN
        RAISE WARNING USING
            MESSAGE = 'the role halldetect_reader is not there, and ' || current_user
                || ' may not create roles: nobody but the owner reads the views yet',
            HINT = 'docs/sql.md, "Who may read", has the three statements for an administrator.';
END
$$;

DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'halldetect_reader') THEN
        GRANT USAGE ON SCHEMA trail TO halldetect_reader;
        GRANT SELECT ON ALL TABLES IN SCHEMA trail TO halldetect_reader;
    END IF;
END
$$;
