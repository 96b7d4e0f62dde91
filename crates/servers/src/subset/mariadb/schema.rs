//! The schema as statements: tables without foreign keys, the foreign keys, and code: views,
//! routines and triggers.

use blockstone_sys::held::HeldDir;
use mysql::Row;

use super::ddl::{as_invoker, without_database, without_definer};
use super::rows::IN_ORDER;
use super::{MariadbSource, Server, failed, quoted, statements};
use crate::mariadb::answer;
use crate::sql::error::{During, SqlError};
use crate::subset::manifest::{AFTER, BEFORE, CODE, Sequence, write_file};

const SEQUENCES: &str = "SELECT TABLE_NAME FROM information_schema.TABLES
    WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'SEQUENCE' ORDER BY TABLE_NAME";
const VIEWS: &str = "SELECT TABLE_NAME FROM information_schema.TABLES
    WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'VIEW' ORDER BY TABLE_NAME";
const VIEW_COLUMNS: &str = "SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS
    WHERE TABLE_SCHEMA = DATABASE() ORDER BY TABLE_NAME, ORDINAL_POSITION";
const ROUTINES: &str = "SELECT ROUTINE_TYPE, ROUTINE_NAME FROM information_schema.ROUTINES
    WHERE ROUTINE_SCHEMA = DATABASE() AND ROUTINE_TYPE IN ('FUNCTION', 'PROCEDURE')
    ORDER BY ROUTINE_TYPE, ROUTINE_NAME";
const TRIGGERS: &str = "SELECT TRIGGER_NAME FROM information_schema.TRIGGERS
    WHERE TRIGGER_SCHEMA = DATABASE()
    ORDER BY EVENT_OBJECT_TABLE, ACTION_TIMING, EVENT_MANIPULATION, ACTION_ORDER";

#[derive(Debug, Default)]
pub struct Schema {
    before: Vec<String>,
    keys: Vec<String>,
    code: Vec<String>,
}

impl Schema {
    pub fn write(&self, dir: &HeldDir) -> Result<(), SqlError> {
        for (file, all) in [(BEFORE, &self.before), (AFTER, &self.keys), (CODE, &self.code)] {
            write_file(dir, file, &statements::text(all))?;
        }
        Ok(())
    }
}

/// Returns columns from the output of `SHOW CREATE …`.
fn shown(
    server: &mut Server,
    kind: &str,
    name: &str,
    columns: &[usize],
) -> Result<Vec<String>, SqlError> {
    let what = format!("read the definition of {} {}", kind.to_lowercase(), quoted(name));
    let database = quoted(&server.database);
    let grant = match kind {
        "VIEW" => format!("GRANT SHOW VIEW ON {database}.* TO this user"),
        "TRIGGER" => format!("GRANT TRIGGER ON {database}.* TO this user"),
        "SEQUENCE" => format!("GRANT SELECT ON {database}.* TO this user"),
        _ if server.is_mariadb => "GRANT SELECT ON mysql.proc TO this user".to_owned(),
        _ => "GRANT SHOW_ROUTINE ON *.* TO this user".to_owned(),
    };
    let ask = format!("SHOW CREATE {kind} {}", quoted(name));
    let row: Option<Row> = answer::first(&mut server.link, &ask).map_err(failed(&what, &grant))?;
    let text =
        |&at: &usize| row.as_ref()?.get_opt::<Option<String>, _>(at).and_then(Result::ok).flatten();
    columns.iter().map(text).collect::<Option<_>>().ok_or_else(|| SqlError::Statement {
        what: what.clone(),
        why: "this user may not see it".to_owned(),
        hint: grant.clone(),
    })
}

pub fn read(source: &mut MariadbSource<'_>) -> Result<Schema, SqlError> {
    let mut schema = Schema::default();
    let server = &mut source.server;
    let database = server.database.clone();
    let plain = |text: &str| without_database(&without_definer(text), &database);
    let sequences: Vec<String> =
        answer::rows(&mut server.link, SEQUENCES).during("list the sequences")?;
    for name in sequences {
        let text = shown(server, "SEQUENCE", &name, &[1])?;
        schema.before.extend(text.iter().map(|text| plain(text)));
    }
    for (table, of) in source.known.tables.iter().zip(&source.catalogue.tables) {
        // A key with an action cannot be added to a column that a stored one is computed from.
        let is_computed = of.columns.iter().any(|column| column.generated);
        let parsed = &table.parsed;
        schema.before.push(plain(if is_computed { &parsed.whole } else { &parsed.bare }));
        let name = quoted(&table.name);
        if !is_computed && !table.parsed.taken.is_empty() {
            let all = table.parsed.taken.iter().map(|key| format!("ADD {}", plain(key)));
            let all = all.collect::<Vec<_>>().join(",\n  ");
            schema.keys.push(format!("ALTER TABLE {name}\n  {all}"));
        }
        for (column, default) in &table.defaults {
            let column = quoted(column);
            let set = format!("ALTER TABLE {name} ALTER {column} SET DEFAULT ({default})");
            schema.code.push(set);
        }
    }
    let routines: Vec<(String, String)> =
        answer::rows(&mut server.link, ROUTINES).during("list the routines")?;
    for (kind, name) in routines {
        let [mode, text] = with_mode(shown(server, &kind, &name, &[1, 2])?, plain);
        let text = as_invoker(&text).ok_or_else(|| not_understood(&kind, &name))?;
        schema.code.extend([mode, text]);
    }
    views(server, &mut schema.code, plain)?;
    let triggers: Vec<String> =
        answer::rows(&mut server.link, TRIGGERS).during("list the triggers")?;
    for name in triggers {
        // A trigger has only the rights of its definer, which is kept.
        let shown = shown(server, "TRIGGER", &name, &[1, 2])?;
        schema.code.extend(with_mode(shown, |text| without_database(text, &database)));
    }
    Ok(schema)
}

/// Returns a statement, preceded by one that sets the SQL mode for parsing it.
fn with_mode(shown: Vec<String>, plain: impl Fn(&str) -> String) -> [String; 2] {
    let mut shown = shown.into_iter();
    let (mode, text) = (shown.next().unwrap_or_default(), shown.next().unwrap_or_default());
    [format!("SET sql_mode = '{}'", mode.replace(['\'', '\\'], "")), plain(&text)]
}

fn not_understood(kind: &str, name: &str) -> SqlError {
    SqlError::Statement {
        what: format!("read the definition of {} {}", kind.to_lowercase(), quoted(name)),
        why: "it is not understood".to_owned(),
        hint: "please report it, with the version of the server".to_owned(),
    }
}

/// Views may select from each other, so all are first created with their columns only.
fn views(
    server: &mut Server,
    code: &mut Vec<String>,
    plain: impl Fn(&str) -> String,
) -> Result<(), SqlError> {
    let views: Vec<String> = answer::rows(&mut server.link, VIEWS).during("list the views")?;
    if views.is_empty() {
        return Ok(());
    }
    let columns: Vec<(String, String)> =
        answer::rows(&mut server.link, VIEW_COLUMNS).during("list the columns of views")?;
    for view in &views {
        let own = columns.iter().filter(|(of, _)| of == view);
        let own = own.map(|(_, column)| format!("1 AS {}", quoted(column)));
        let own = own.collect::<Vec<_>>().join(", ");
        let view = quoted(view);
        code.push(format!("CREATE SQL SECURITY INVOKER VIEW {view} AS SELECT {own}"));
    }
    code.push("SET sql_mode = ''".to_owned());
    for view in &views {
        for text in shown(server, "VIEW", view, &[1])? {
            let text = plain(&text).replacen("CREATE ", "CREATE OR REPLACE ", 1);
            code.push(as_invoker(&text).ok_or_else(|| not_understood("VIEW", view))?);
        }
    }
    Ok(())
}

/// Returns the current values of the sequences.
pub fn sequences(server: &mut Server) -> Result<Vec<Sequence>, SqlError> {
    let names: Vec<String> =
        answer::rows(&mut server.link, SEQUENCES).during("list the sequences")?;
    let mut all = Vec::new();
    for name in names {
        let what = format!("read the sequence {}", quoted(&name));
        let ask = format!("SELECT next_not_cached_value FROM {}{IN_ORDER}", quoted(&name));
        let next: Option<i64> = answer::first(&mut server.link, &ask)
            .map_err(failed(&what, "GRANT SELECT ON the sequence TO this user"))?;
        let (schema, last_value) = (server.database.clone(), next.unwrap_or_default());
        all.push(Sequence { schema, name, last_value, is_called: false });
    }
    Ok(all)
}
