//! All targets.

mod copies;
pub(crate) mod flash;
mod host;
pub(crate) mod imports;
pub(crate) mod instance;
mod meet;
pub(crate) mod offload;
pub(crate) mod recording;
pub(crate) mod reduce;
pub(crate) mod scans;
mod scrape;
pub(crate) mod seal;
mod server;
pub(crate) mod size;
pub(crate) mod subset;
pub(crate) mod traces;
pub(crate) mod workload;

/// A parser of bytes that may be hostile.
#[derive(Debug)]
pub struct Target {
    pub name: &'static str,
    /// Valid inputs.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Feeds an input; returns whether it was accepted as valid.
    pub run: fn(&[u8]) -> bool,
    /// Memory that one input may take, in MiB.
    pub heap_mib: u64,
    /// Whether any bytes are a valid input.
    pub refuses_nothing: bool,
}

const fn target(name: &'static str, seeds: fn() -> Vec<Vec<u8>>, run: fn(&[u8]) -> bool) -> Target {
    Target { name, seeds, run, heap_mib: 64, refuses_nothing: false }
}

const fn any(name: &'static str, seeds: fn() -> Vec<Vec<u8>>, run: fn(&[u8]) -> bool) -> Target {
    Target { refuses_nothing: true, ..target(name, seeds, run) }
}

/// Targets, grouped by what they read.
pub const TARGETS: &[Target] = &[
    // Recordings.
    target("manifest", recording::manifests, recording::manifest),
    target("series", recording::series_files, recording::series),
    target("histograms", recording::histogram_files, recording::histograms),
    target("histogram", recording::encodings, recording::histogram),
    target("events", recording::event_files, recording::events),
    target("judge", recording::manifests, recording::judge),
    target("grid", recording::plans, recording::grid),
    // Saved scans.
    target("scan", scans::documents, scans::scan),
    target("fingerprints", scans::fingerprint_files, scans::fingerprints),
    target("file_sets", scans::set_files, scans::sets),
    // Files that copies leave and write.
    target("copy_sidecar", copies::sidecars, copies::sidecar),
    target("copy_manifest", copies::manifests, copies::manifest),
    // Files of other monitors.
    target("collectl", imports::collectl, imports::import),
    target("sar", imports::sar, imports::import),
    target("sar_text", imports::sar_text, imports::import),
    target("sar_csv", imports::sar_csv, imports::import),
    target("sar_xml", imports::sar_xml, imports::import),
    target("iostat", imports::iostat, imports::import),
    target("iostat_json", imports::iostat_json, imports::import),
    target("load_reports", imports::loads, imports::load),
    target("gzip", imports::compressed, imports::import),
    target("vmstat", imports::vmstat, imports::import),
    target("dool", imports::dool, imports::import),
    target("nmon", imports::nmon, imports::import),
    target("plot", imports::plot, imports::import),
    target("archive", imports::archives, imports::import),
    // Files of other tools, and of users.
    target("trace", flash::traces, flash::trace),
    target("fio_log", flash::logs, flash::log),
    target("sql_trace", traces::oracle, traces::trace),
    target("tkprof", traces::tkprof, traces::trace),
    target("slow_log", traces::slow, traces::trace),
    target("postgres_log", traces::postgres, traces::trace),
    target("model", reduce::models, reduce::model),
    target("catalogue", size::catalogues, size::catalogue),
    target("performances", size::performance_lists, size::performances),
    target("conf", workload::confs, workload::conf),
    target("words", workload::words, workload::word),
    target("offload_counters", offload::tables, offload::table),
    target("masks", subset::masks, subset::mask),
    target("masked_row", subset::rows, subset::row),
    target("virtual_keys", subset::key_files, subset::keys),
    target("oracle_keys", subset::exports, subset::export),
    target("subset_manifest", subset::manifests, subset::manifest),
    target("copied_tuples", subset::tuple_streams, subset::tuples),
    // Data files of databases.
    target("pages", reduce::pages, reduce::page),
    target("stamps", instance::stamps, instance::stamp),
    // Files of /proc and /sys.
    any("proc", host::pages, host::probes),
    any("processes", host::process_files, host::process),
    // Log pages of devices.
    any("nvme", host::log_pages, host::log_page),
    // Data from networks.
    target("scrape", scrape::requests, scrape::scrape),
    target("meet", meet::conversations, meet::talk),
    target("postgres", server::postgres_answers, server::postgres),
    target("mysql", server::mysql_answers, server::mysql),
    // The disks of the miniature instance.
    target("block", instance::blocks, instance::block),
    target("redo", instance::redo_blocks, instance::redo),
    target("group", instance::groups, instance::group),
    target("control", instance::controls, instance::control),
    target("recovery", instance::logs, instance::recovery),
];
