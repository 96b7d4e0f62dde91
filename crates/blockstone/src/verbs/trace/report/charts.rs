//! Charts of a profile.

use blockstone_base::table::Measure;
use blockstone_base::units::format_ns;
use blockstone_report::chart::{Axis, Chart, Color, Form, Point};
use blockstone_trace::{Component, Histogram, Trace};

use crate::verbs::trace::words;

/// Time and calls on each side; `None` if that side has none.
pub type Sides = [Option<(f64, f64)>; 2];

/// Maximum number of components that a chart has room for.
const COMPONENTS_MAX: usize = 6;
const EVENTS_MAX: usize = 3;

/// Charts response time by component.
pub fn profile(trace: &Trace) -> Chart {
    let all = words::by_time(&trace.components);
    let shown = &all[..all.len().min(COMPONENTS_MAX)];
    let names = shown.iter().map(|(component, _)| words::component(component)).collect();
    let x = Axis::names("", names);
    let y = Axis::new("time", Measure::Nanoseconds);
    let chart = Chart::new("profile-chart", "Response time by component", x, y).wide(260);
    let mut chart = chart.about("What all statements together spent their time on.");
    for (at, (component, spent)) in shown.iter().enumerate() {
        let points = vec![Point::from((at as f64, Some(spent.ns)))];
        let name = words::component(component);
        chart = chart.layer(name, color(component), Form::Bars { points, stacked: true });
    }
    chart
}

/// Charts the time of each component in both traces.
pub fn against(components: &[(String, Sides)]) -> Chart {
    let shown = &components[..components.len().min(COMPONENTS_MAX)];
    let x = Axis::names("", shown.iter().map(|(name, _)| name.clone()).collect());
    let y = Axis::new("time", Measure::Nanoseconds);
    let chart = Chart::new("against-chart", "Response time in A and in B", x, y).wide(260);
    let side = |side: usize| {
        let ns = |(_, sides): &(String, Sides)| Some(sides[side].map_or(0.0, |(ns, _)| ns));
        let points = shown.iter().enumerate();
        let points = points.map(|(at, both)| Point::from((at as f64, ns(both)))).collect();
        Form::Bars { points, stacked: false }
    };
    chart.layer("A", Color::Series(0), side(0)).layer("B", Color::Series(1), side(1))
}

fn color(component: &Component) -> Color {
    match component {
        Component::Cpu => Color::Cpu,
        Component::StorageRead => Color::UserIo,
        Component::StorageWrite => Color::SystemIo,
        Component::Lock => Color::Concurrency,
        Component::Unaccounted => Color::Grey,
        Component::Wait(event) if event.starts_with("db file") || event.contains("direct path") => {
            Color::UserIo
        }
        Component::Wait(event) if event.starts_with("SQL*Net") => Color::Network,
        Component::Wait(event) if event == "log file sync" => Color::Commit,
        Component::Wait(event) if event.starts_with("enq:") => Color::Application,
        Component::Wait(_) => Color::OtherWait,
    }
}

/// Charts calls by their time, for the components that took longest.
pub fn histogram(trace: &Trace) -> Vec<Chart> {
    let all = words::by_time(&trace.components);
    let counted = all.into_iter().filter(|(_, spent)| !spent.histogram.calls.is_empty());
    let chart = |(at, (component, spent)): (usize, (&Component, &_))| {
        let name = words::component(component);
        one(&format!("histogram-{at}"), &name, color(component), spent)
    };
    counted.take(EVENTS_MAX).enumerate().map(chart).collect()
}

fn one(id: &str, name: &str, color: Color, spent: &blockstone_trace::Spent) -> Chart {
    let Histogram { calls, .. } = &spent.histogram;
    let first = calls.iter().position(|calls| *calls > 0.0).unwrap_or(0);
    let names = (first..calls.len()).map(|at| format!("< {}", format_ns(words::below_ns(at))));
    let x = Axis::names("time of a call", names.collect());
    let y = Axis::new("calls", Measure::Count);
    let points = calls[first..].iter().enumerate();
    let points = points.map(|(at, calls)| (at as f64, Some(*calls)).into()).collect();
    Chart::new(id.to_owned(), name.to_owned(), x, y).third().layer(
        name,
        color,
        Form::Bars { points, stacked: true },
    )
}
