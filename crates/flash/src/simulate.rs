//! Simulates one device and one workload from full to steady state, request by request, with time.

mod outcome;
mod plan;
mod run;
mod throttle;

pub use outcome::{Frame, Outcome, Percentiles, Point, Steady};
pub use plan::{Engine, Pace as Rate, Phase, Plan, SimulationError, Start};
pub use run::{heat_from_ns, replay, simulate};
