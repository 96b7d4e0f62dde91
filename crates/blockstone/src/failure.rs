//! Errors of this program with their hints, and the hint of any error.

use std::borrow::Cow;
use std::error::Error;
use std::{fmt, io};

use anyhow::anyhow;
use blockstone_base::hint::Hint;

/// An error and what to do about it.
#[derive(Debug)]
pub struct Failure {
    what: String,
    hint: String,
    cause: Option<anyhow::Error>,
}

impl Failure {
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into(), cause: None }
    }

    /// Returns the same failure with its cause, whose message is printed after this one.
    #[must_use]
    pub fn because(self, cause: impl Into<anyhow::Error>) -> Self {
        Self { cause: Some(cause.into()), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(AsRef::as_ref)
    }
}

impl Hint for Failure {
    fn hint(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(&self.hint))
    }
}

/// Returns an error with this message, and the hint of another error.
pub fn with_hint_of(error: &impl Hint, what: String) -> anyhow::Error {
    match error.hint() {
        Some(hint) => anyhow!(Failure::new(what, hint)),
        None => anyhow!(what),
    }
}

type Of = for<'a> fn(&'a (dyn Error + 'static)) -> Option<Cow<'a, str>>;

fn of<'a, E: Hint + 'static>(error: &'a (dyn Error + 'static)) -> Option<Cow<'a, str>> {
    error.downcast_ref::<E>()?.hint()
}

/// The errors that have hints, except those of the instance, which only errors of other crates
/// carry; these take their hints.
const ALL: &[Of] = &[
    of::<Failure>,
    of::<blockstone_base::histogram::DecodeError>,
    of::<blockstone_calibrate::CalibrateError>,
    of::<blockstone_check::CheckError>,
    of::<blockstone_check::meet::LinkError>,
    of::<blockstone_copy::CopyError>,
    of::<blockstone_copy::tree::PlanError>,
    of::<blockstone_engine::EngineError>,
    of::<blockstone_fleet::FleetError>,
    of::<blockstone_flash::device::DeviceError>,
    of::<blockstone_flash::estimate::EstimateError>,
    of::<blockstone_flash::fit::FitError>,
    of::<blockstone_flash::ftl::ConfigError>,
    of::<blockstone_flash::ftl::Full>,
    of::<blockstone_flash::simulate::SimulationError>,
    of::<blockstone_flash::trace::TraceError>,
    of::<blockstone_flash::workload::WorkloadError>,
    of::<blockstone_import::ImportError>,
    of::<blockstone_input::Foreign>,
    of::<blockstone_measure::capability::UnknownCapability>,
    of::<blockstone_measure::capability::MissingCapability>,
    of::<blockstone_measure::claim::ClaimError>,
    of::<blockstone_offload::CountersError>,
    of::<blockstone_offload::fit::FitError>,
    of::<blockstone_pushdown::cells::CellsError>,
    of::<blockstone_record::RecordError>,
    of::<blockstone_reduce::compress::CodecError>,
    of::<blockstone_reduce::grid::GridError>,
    of::<blockstone_reduce::model::ModelError>,
    of::<blockstone_report::expect::ExpectError>,
    of::<blockstone_report::ReportError>,
    of::<blockstone_run::RunError>,
    of::<blockstone_run::noise::NoiseError>,
    of::<blockstone_scan::ScanError>,
    of::<blockstone_screen::ScreenError>,
    of::<blockstone_servers::SqlError>,
    of::<blockstone_servers::TargetError>,
    of::<blockstone_size::hardware::HardwareError>,
    of::<blockstone_size::hardware::catalogue::CatalogueError>,
    of::<blockstone_size::hardware::cpu::PerformanceError>,
    of::<blockstone_subset::CatalogueError>,
    of::<blockstone_subset::MaskError>,
    of::<blockstone_subset::oracle::OracleError>,
    of::<blockstone_sys::bpf::BpfError>,
    of::<blockstone_sys::buffer::ArenaError>,
    of::<blockstone_sys::file::FileError>,
    of::<blockstone_sys::free_space::FreeSpaceError>,
    of::<blockstone_sys::page_cache::PageCacheError>,
    of::<blockstone_sys::perf::PerfError>,
    of::<blockstone_sys::ring::RingError>,
    of::<blockstone_sys::survey::SurveyError>,
    of::<blockstone_trace::TraceError>,
    of::<blockstone_watch::ImportError>,
    of::<blockstone_watch::WatchError>,
    of::<blockstone_workload::conf::ConfError>,
    of::<blockstone_workload::noise::NoiseError>,
    of::<blockstone_workload::ParameterError>,
    of::<blockstone_workload::WorkloadError>,
];

/// Returns the hint of an error that has one.
fn own<'a>(error: &'a (dyn Error + 'static)) -> Option<Cow<'a, str>> {
    // An error of the system may carry one of ours, which is not among its causes.
    let carried = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    let error = carried.map_or(error, |carried| carried as _);
    ALL.iter().find_map(|of| of(error))
}

/// Returns the hint of an error that is nearest to its cause.
pub fn hint<'a>(chain: impl IntoIterator<Item = &'a (dyn Error + 'static)>) -> Option<String> {
    chain.into_iter().filter_map(own).last().map(Cow::into_owned)
}
