//! The need as a load duration curve, and its hours of the week.

use blockstone_base::table::Measure;
use blockstone_base::units::thousands;
use blockstone_report::chart::{Axis, Chart, Color, Form, HeatCell};
use blockstone_size::hours::{WEEKDAYS, day_and_hour, name};
use blockstone_size::need::Need;

use super::super::Sized;

/// Charts the share of the time for which the need is at least a given rate.
pub fn durations(sized: &Sized, need: &Need) -> Option<Chart> {
    if need.durations.len() < 2 {
        return None;
    }
    let all: f64 = need.durations.iter().map(|it| it.1).sum();
    let mut passed = 0.0;
    let mut points = Vec::with_capacity(need.durations.len());
    for (iops, seconds) in &need.durations {
        passed += seconds;
        points.push((passed / all, Some(*iops)));
    }
    let x = Axis::new("share of the time", Measure::Share);
    let y = Axis::new("IOPS of the storage", Measure::Count);
    let chart = Chart::new("durations", "How long how much is needed", x, y).about(
        "For this share of the time the storage does at least so much; the level is what is sized \
         for.",
    );
    let chart = chart.layer("IOPS", Color::Series(0), Form::line(points));
    Some(match sized.hardware_iops() {
        Some(iops) => chart.level(iops, sized.named()),
        None => chart,
    })
}

/// Charts the hours of the week, darker for a larger need.
pub fn hours(need: &Need) -> Chart {
    let most = need.week.peak().map_or(1.0, |it| it.0.max(f64::MIN_POSITIVE));
    let cell = |(hour, value): (usize, &Option<f64>)| {
        let value = (*value)?;
        let (day, of_day) = day_and_hour(hour);
        // The first day is at the top.
        let row = (WEEKDAYS.len() - 1 - day) as f64;
        let text = format!("{}: {} IOPS", name(hour), thousands(value.round() as i64));
        Some(HeatCell {
            x: (of_day as f64 - 0.5, of_day as f64 + 0.5),
            y: (row - 0.5, row + 0.5),
            heat: (value / most).clamp(0.0, 1.0),
            text,
        })
    };
    let cells: Vec<HeatCell> = need.week.0.iter().enumerate().filter_map(cell).collect();
    let days = WEEKDAYS.iter().rev().map(|day| (*day).to_owned()).collect();
    let hours = (0..24).map(|hour| hour.to_string()).collect();
    let chart =
        Chart::new("week", "Hours of the week", Axis::names("hour", hours), Axis::names("", days));
    let chart = chart.about("The most of all weeks, of means over each hour.");
    chart.layer("IOPS", Color::Series(0), Form::Heat(cells))
}
