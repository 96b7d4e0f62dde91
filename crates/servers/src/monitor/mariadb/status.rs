//! Status variables: their mapping to our columns, and the monitor's own share of them.

use std::collections::HashMap;

use super::link::Link;
use crate::mariadb::counters::{DOUBLE_WRITES, STATISTICS, TRANSFERS};
use crate::monitor::values::Values;
use crate::sql::error::SqlError;

/// A column, its variable, the variable's unit in units of the column, and whether sessions have
/// their own value.
type Known = (&'static str, &'static str, u64, bool);

const MS: u64 = 1_000_000;

/// Columns in addition to those of [`STATISTICS`], or replacing them.
const MORE: [Known; 21] = [
    ("block_changes", "Innodb_buffer_pool_write_requests", 1, false),
    ("commits", "Com_commit", 1, true),
    ("rollbacks", "Com_rollback", 1, true),
    ("statements", "Questions", 1, true),
    ("logons", "Connections", 1, false),
    ("rows_read", "Rows_read", 1, true),
    ("rows_sent", "Rows_sent", 1, true),
    ("rows_inserted", "Handler_write", 1, true),
    ("rows_updated", "Handler_update", 1, true),
    ("rows_deleted", "Handler_delete", 1, true),
    ("temp_files", "Created_tmp_files", 1, false),
    ("deadlocks", "Innodb_deadlocks", 1, false),
    ("row_lock_waits", "Innodb_row_lock_waits", 1, false),
    ("row_lock_ns", "Innodb_row_lock_time", MS, false),
    ("redo_records", "Innodb_log_write_requests", 1, false),
    ("redo_buffer_full", "Innodb_log_waits", 1, false),
    ("checkpoint_written_blocks", "Innodb_buffer_pool_pages_flushed", 1, false),
    ("writer_written_blocks", "Innodb_buffer_pool_pages_LRU_flushed", 1, false),
    ("checkpoint_age_bytes", "Innodb_checkpoint_age", 1, false),
    ("history_length", "Innodb_history_list_length", 1, false),
    (UPTIME, "Uptime", 1, false),
];
/// Seconds since the server started.
const UPTIME: &str = "uptime";
/// Number of pages in the buffer cache.
const POOL_PAGES: &str = "Innodb_buffer_pool_pages_total";

#[derive(Debug, Default)]
pub struct Status {
    /// Values of our own earlier sessions on the same server, by column.
    before: Values,
    own: Values,
    uptime_s: u64,
}

#[derive(Debug, Default)]
pub struct Reported {
    pub values: Values,
    /// Requests of the server: reads, bytes read, writes, bytes written.
    pub transfers: [Option<u64>; 4],
}

impl Status {
    /// Returns the current values, without our own share.
    pub fn look(&mut self, link: &mut Link) -> Result<Reported, SqlError> {
        let rows: Vec<(String, String, Option<String>)> = link.ask(&query())?;
        let number = |text: &str| text.parse::<u64>().ok();
        let mut server = HashMap::new();
        let mut session = HashMap::new();
        for (name, value, own) in &rows {
            let name = name.to_lowercase();
            server.extend(number(value).map(|value| (name.clone(), value)));
            session.extend(own.as_deref().and_then(number).map(|value| (name, value)));
        }
        let of = |name: &str| server.get(&name.to_lowercase()).copied();
        // Values that do not fit in 64 bits are omitted: no counter of a real server grows that
        // far.
        let times = |name: &str, unit: u64| of(name).and_then(|value| value.checked_mul(unit));
        let mut values = Values::new();
        values
            .extend(STATISTICS.into_iter().filter_map(|(column, name)| Some((column, of(name)?))));
        let page_bytes = page_bytes(link);
        values.extend(times(DOUBLE_WRITES, page_bytes).map(|bytes| ("protection_bytes", bytes)));
        values.extend(times(POOL_PAGES, page_bytes).map(|bytes| ("buffer_cache_bytes", bytes)));
        for (column, variable, unit, is_own) in MORE {
            let Some(value) = times(variable, unit) else { continue };
            values.insert(column, value);
            if is_own {
                let own = session.get(&variable.to_lowercase()).copied().unwrap_or(0);
                self.own.insert(column, own);
            }
        }
        let uptime_s = values.remove(UPTIME).unwrap_or(0);
        if uptime_s < self.uptime_s {
            self.before.clear(); // The server has restarted; its counters do not include them.
        }
        self.uptime_s = uptime_s;
        for (column, own) in &self.own {
            let own = own.saturating_add(*self.before.get(column).unwrap_or(&0));
            values.entry(column).and_modify(|value| *value = value.saturating_sub(own));
        }
        Ok(Reported { values, transfers: TRANSFERS.map(of) })
    }

    /// Call after a new session has replaced the last one.
    pub fn reconnected(&mut self) {
        for (column, own) in self.own.drain() {
            let before = self.before.entry(column).or_default();
            *before = before.saturating_add(own);
        }
    }
}

fn page_bytes(link: &Link) -> u64 {
    let known = link.settings.iter().find(|(name, _)| name == "innodb_page_size");
    known.and_then(|(_, value)| value.parse().ok()).unwrap_or(16384)
}

/// Returns a query for the server's variables, and for our session's values before the query.
fn query() -> String {
    let statistics = STATISTICS.iter().map(|(_, variable)| *variable);
    let more = MORE.iter().map(|(_, variable, ..)| *variable);
    let all = statistics.chain(more).chain(TRANSFERS).chain([DOUBLE_WRITES, POOL_PAGES]);
    let names: Vec<String> = all.map(|name| format!("'{name}'")).collect();
    let own = MORE.iter().filter(|(.., is_own)| *is_own);
    let own: Vec<String> = own.map(|(_, name, ..)| format!("'{name}'")).collect();
    format!(
        "SELECT g.VARIABLE_NAME AS blockstone_watch, g.VARIABLE_VALUE, s.VARIABLE_VALUE
        FROM information_schema.GLOBAL_STATUS AS g LEFT JOIN information_schema.SESSION_STATUS AS s
            ON s.VARIABLE_NAME = g.VARIABLE_NAME AND s.VARIABLE_NAME IN ({})
        WHERE g.VARIABLE_NAME IN ({})",
        own.join(", "),
        names.join(", ")
    )
}
