//! Parameters of a verb after defaults, which a manifest stores as `settings`.
//!
//! An option is declared by its verb, in the struct that the command line fills in and whose fields
//! [`stored`] puts into a manifest. The structs here are for readers, which know no verb: they have
//! the parameters that judging and reports use, and the facts that a verb adds to its options.
//! Every parameter is optional, so that a manifest of any version can be read: parameters that it
//! lacks are `None`, and all others stay in `settings` untouched.

use std::collections::BTreeMap;

use blockstone_base::units::{Bytes, Nanos};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::manifest::Manifest;

pub trait Parameters: Default + Serialize + DeserializeOwned {
    /// Keys of all parameters.
    const NAMES: &'static [&'static str];

    /// Returns the known parameters in the form in which a manifest stores them.
    fn settings(&self) -> BTreeMap<String, Value> {
        stored(self)
    }
}

/// Returns the fields of options as a manifest stores them.
pub fn stored(options: &impl Serialize) -> BTreeMap<String, Value> {
    match serde_json::to_value(options) {
        Ok(Value::Object(known)) => known.into_iter().collect(),
        _ => BTreeMap::new(),
    }
}

impl Manifest {
    /// Returns its settings as the parameters of a verb. A setting of the wrong type counts as
    /// missing: manifests are not trusted.
    pub fn parameters<P: Parameters>(&self) -> P {
        let read = |settings: Map<String, Value>| P::deserialize(Value::Object(settings));
        let owned = |(name, value): (&String, &Value)| (name.clone(), value.clone());
        let sound = |one: &(String, Value)| read([one.clone()].into_iter().collect()).is_ok();
        let all = self.settings.iter().map(owned);
        read(all.clone().collect())
            .or_else(|_| read(all.filter(sound).collect()))
            .unwrap_or_default()
    }

    /// Stores the known `parameters` in its settings, replacing earlier values.
    pub fn set_parameters<P: Parameters>(&mut self, parameters: &P) {
        self.settings.extend(parameters.settings());
    }
}

/// Declares the parameters of a verb: each field is optional and named after its key.
macro_rules! parameters {
    ($(#[$about:meta])* $verb:ident { $($(#[$doc:meta])* $name:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct $verb {
            $(
                $(#[$doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $name: Option<$type>,
            )*
        }

        impl Parameters for $verb {
            const NAMES: &'static [&'static str] = &[$(stringify!($name),)*];
        }
    };
}

parameters! {
    CalibrateParameters {
        block_bytes: Bytes,
        max_latency_ns: Nanos,
        buffered: bool,
        read_only: bool,
        keep: bool,
        matrix: bool,
        buffered_writes: bool,
        /// Whether visits of cached blocks are measured too.
        cpu: bool,
        /// The `--span` given; null without it.
        asked_span_bytes: Option<Bytes>,
        /// Start of the visited range, if not the start of the file.
        offset_bytes: Bytes,
        /// Requested numbers of large reads in flight.
        streams: Vec<u32>,
        /// Percentage of reads for each mix of random reads and writes.
        mixes_read_pct: Vec<u32>,
        /// Name of the store that the storage is measured for.
        store: String,
        thoroughness: String,
        /// Size of the visited range.
        size_bytes: Bytes,
        /// The `--size` given; null without it.
        asked_size_bytes: Option<Bytes>,
        rate_per_s: f64,
        poisson: bool,
        link_bytes_per_s: f64,
        precondition: bool,
        /// Time limit of preconditioning.
        precondition_limit_ns: Nanos,
        /// Duration of each of its rounds.
        precondition_round_ns: Nanos,
    }
}

parameters! {
    /// Parameters of `run`, and properties of the database known once it is open.
    RunParameters {
        target: String,
        /// Whether the database runs in threads of this process.
        in_process: bool,
        disks: Vec<DiskParameter>,
        block_bytes: Bytes,
        cache_bytes: Bytes,
        /// Limit on the page cache of the database; absent if there is none.
        page_cache_bytes: Bytes,
        /// `direct` or `buffered`, if requested.
        io: String,
        redundancy: String,
        link_bytes_per_s: f64,
        schemas: u32,
        sessions: u32,
        readers: u32,
        writers: u32,
        rows_per_schema: u64,
        work_unit: u32,
        update_work_unit: u32,
        update_pct: u32,
        scan_pct: u32,
        scan_rows: u64,
        obfuscate: f64,
        /// In hexadecimal: JSON numbers are exact only up to 53 bits.
        schedule_checksum: String,
        run_time_ns: Nanos,
        rate_per_s: f64,
        /// `scan` for the direct-path matrix, `oltp` for order entry, `bulk-write` for tables made
        /// of existing rows; absent for the SLOB method.
        profile: String,
        /// Percentage of order-entry transactions by kind.
        transaction_pct: BTreeMap<String, u32>,
        scan_multiblock: Vec<u32>,
        scan_slots: u32,
        scan_bytes: Bytes,
        /// Product and version of the database; absent for the miniature instance.
        server: String,
        /// Settings reported by the database.
        server_settings: BTreeMap<String, String>,
        /// Settings of the database that make commits durable, with the values that do.
        durable_settings: BTreeMap<String, Vec<String>>,
        /// Execution plan of the database for each kind of statement.
        plans: BTreeMap<String, String>,
        /// The same plans after the window.
        plans_after: BTreeMap<String, String>,
    }
}

parameters! {
    WatchParameters {
        /// Product and version of the database that is also watched.
        server: String,
        /// Imported file of another tool.
        import: String,
    }
}

parameters! {
    NoiseParameters {
        /// Mode of the writes: `redo`, `direct` or `buffered`.
        mode: String,
        /// Size of the area that each writer passes through.
        area_bytes: Bytes,
        /// Product and version of the database that was also watched.
        server: String,
    }
}

/// A disk of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskParameter {
    /// Path as given by the user.
    pub path: String,
    /// Group of disks that fail together; `None` makes each disk a group of its own.
    pub failure_group: Option<String>,
}

impl RunParameters {
    /// Returns whether the database runs in its own processes.
    pub fn is_apart(&self) -> bool {
        self.server.is_some() && !self.in_process.unwrap_or_else(|| before::in_process(self))
    }

    /// Returns the settings of the database that make commits durable, with the values that do.
    pub fn durable_settings(&self) -> BTreeMap<String, Vec<String>> {
        self.durable_settings.clone().unwrap_or_else(before::durable_settings)
    }
}

/// Values for manifests that predate `in_process` and `durable_settings`. This is the only place
/// outside of the targets that knows a target by name.
mod before {
    use std::collections::BTreeMap;

    use super::RunParameters;

    pub fn in_process(run: &RunParameters) -> bool {
        run.target.as_ref().is_none_or(|target| target.starts_with("sqlite"))
    }

    pub fn durable_settings() -> BTreeMap<String, Vec<String>> {
        const DURABLE: [(&str, &[&str]); 4] = [
            ("fsync", &["on"]),
            ("synchronous_commit", &["on", "remote_apply", "remote_write", "local"]),
            ("innodb_flush_log_at_trx_commit", &["1"]),
            ("synchronous", &["2", "3"]),
        ];
        let owned = |values: &[&str]| values.iter().copied().map(str::to_owned).collect();
        DURABLE.into_iter().map(|(name, values)| (name.to_owned(), owned(values))).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tests::manifest;

    #[test]
    fn parameters_read_back_as_they_were_written() {
        let mut manifest = manifest("id");
        manifest.settings.clear();
        let run = RunParameters {
            target: Some("instance".to_owned()),
            disks: Some(vec![DiskParameter { path: "/d1".to_owned(), failure_group: None }]),
            run_time_ns: Some(Nanos::millis(30_000)),
            plans: Some([("select".to_owned(), "Index Scan".to_owned())].into()),
            ..RunParameters::default()
        };
        manifest.set_parameters(&run);
        assert_eq!(manifest.parameters::<RunParameters>(), run);
        let settings = json!({
            "target": "instance",
            "disks": [{ "path": "/d1", "failure_group": null }],
            "run_time_ns": 30_000_000_000_u64,
            "plans": { "select": "Index Scan" },
        });
        assert_eq!(json!(manifest.settings), settings, "what is not known has no key");
    }

    #[test]
    fn what_is_added_later_leaves_what_is_there_and_what_is_unknown() {
        let mut manifest = manifest("id");
        manifest.settings.insert("of a later version".to_owned(), json!([1]));
        let size_bytes = Some(Bytes::mib(64));
        manifest.set_parameters(&CalibrateParameters { size_bytes, ..Default::default() });
        let read: CalibrateParameters = manifest.parameters();
        assert_eq!((read.size_bytes, read.block_bytes), (size_bytes, Some(Bytes::kib(8))));
        assert_eq!(manifest.settings["of a later version"], json!([1]));
    }

    #[test]
    fn a_parameter_of_a_wrong_type_is_missing_and_takes_no_other_with_it() {
        let mut manifest = manifest("id");
        manifest.settings.insert("sessions".to_owned(), json!("many"));
        manifest.settings.insert("plans".to_owned(), json!({ "select": 1 }));
        manifest.settings.insert("update_pct".to_owned(), json!(10));
        let read: RunParameters = manifest.parameters();
        let expected = RunParameters {
            block_bytes: Some(Bytes::kib(8)),
            update_pct: Some(10),
            ..RunParameters::default()
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn a_size_that_was_not_asked_for_is_null() {
        let none = CalibrateParameters { asked_size_bytes: Some(None), ..Default::default() };
        assert_eq!(json!(none.settings()), json!({ "asked_size_bytes": null }));
    }

    #[test]
    fn manifests_that_do_not_say_what_a_target_is_are_read_by_its_name() {
        let run = |target: &str| RunParameters {
            target: Some(target.to_owned()),
            server: Some("a server".to_owned()),
            ..RunParameters::default()
        };
        assert!(run("postgres:scratch").is_apart());
        assert!(!run("sqlite:/data").is_apart());
        assert!(!RunParameters { in_process: Some(true), ..run("new") }.is_apart());
        assert_eq!(run("postgres").durable_settings()["fsync"], ["on"]);
        let none = RunParameters { durable_settings: Some(BTreeMap::new()), ..run("new") };
        assert!(none.durable_settings().is_empty());
    }
}
