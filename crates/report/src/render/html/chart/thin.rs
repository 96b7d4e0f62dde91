//! Thins layers that have more points than the chart has pixels: a day of seconds must not make a
//! page of megabytes.

use std::borrow::Cow;

use crate::chart::{Chart, Form, Point};

/// Layers with at least twice as many points are thinned to about this number.
const POINTS: usize = 800;

/// Returns the chart with neighbouring points combined if a layer has too many, which its text
/// states.
pub fn thinned(chart: &Chart) -> Cow<'_, Chart> {
    let most = chart.layers.iter().map(|layer| layer.form.points().len()).max().unwrap_or(0);
    let size = most / POINTS;
    if size < 2 {
        return Cow::Borrowed(chart);
    }
    let mut thin = chart.clone();
    for layer in &mut thin.layers {
        match &mut layer.form {
            Form::Line { points, .. } | Form::Dots(points) => *points = extremes(points, size * 2),
            Form::Area(points) => *points = means(points, size),
            Form::Bars { .. } | Form::Heat(_) => {}
        }
    }
    let has = |wanted: fn(&Form) -> bool| chart.layers.iter().any(|layer| wanted(&layer.form));
    let mut remarks = Vec::new();
    if has(|form| matches!(form, Form::Area(_))) {
        remarks.push(format!("Each point of an area is the mean of {size}."));
    }
    if has(|form| matches!(form, Form::Line { .. } | Form::Dots(_))) {
        remarks.push(format!("Lines show the least and the greatest of each {} points.", size * 2));
    }
    let remarks = remarks.join(" ");
    thin.about.push_str(if thin.about.is_empty() { "" } else { " " });
    thin.about.push_str(&remarks);
    Cow::Owned(thin)
}

/// Returns the lowest and the highest point of each group, in order; a gap within a group remains a
/// gap.
fn extremes(points: &[Point], size: usize) -> Vec<Point> {
    let mut kept = Vec::new();
    for group in points.chunks(size) {
        let by_y =
            |a: &&Point, b: &&Point| a.y.partial_cmp(&b.y).unwrap_or(std::cmp::Ordering::Equal);
        let known = || group.iter().filter(|point| point.y.is_some());
        let ends = [known().min_by(by_y), known().max_by(by_y)];
        let gap = group.iter().find(|point| point.y.is_none());
        let mut ends: Vec<Point> = ends.into_iter().chain([gap]).flatten().copied().collect();
        ends.sort_by(|a, b| a.x.total_cmp(&b.x));
        ends.dedup_by(|a, b| a == b);
        kept.extend(ends);
    }
    kept
}

/// Returns the mean of each group; none if no point of the group has a value.
fn means(points: &[Point], size: usize) -> Vec<Point> {
    let mean = |values: &[f64]| {
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let join = |group: &[Point]| {
        let xs: Vec<f64> = group.iter().map(|point| point.x).collect();
        let ys: Vec<f64> = group.iter().filter_map(|point| point.y).collect();
        let condemned = group.iter().any(|point| point.condemned);
        Point { x: mean(&xs).unwrap_or(0.0), y: mean(&ys), interval: None, condemned }
    };
    points.chunks(size).map(join).collect()
}

#[cfg(test)]
mod tests {
    use blockstone_base::table::Measure;

    use super::*;
    use crate::chart::{Axis, Color};

    #[test]
    fn a_day_in_seconds_keeps_its_peaks_gaps_and_means() {
        let value = |n: usize| match n {
            5_000 => Some(99.0),
            7_000..8_000 => None,
            _ => Some((n % 2) as f64),
        };
        let points = || (0..86_400).map(move |n| (n as f64, value(n)));
        let axis = Axis::new("y", Measure::Count);
        let chart = Chart::new("day", "Day", Axis::time(), axis)
            .layer("line", Color::Grey, Form::line(points()))
            .layer("area", Color::Grey, Form::area(points()));
        let thin = thinned(&chart);
        let [line, area] = [0, 1].map(|layer| thin.layers[layer].form.points());
        assert!(line.len() < 3_000 && area.len() < 1_000, "{} {}", line.len(), area.len());
        assert!(line.iter().any(|point| point.y == Some(99.0)));
        assert!(line.iter().any(|point| point.y.is_none()) && area.iter().any(|p| p.y.is_none()));
        assert_eq!(area[0].y, Some(0.5));
        assert!(thin.about.contains("mean of 108"), "{}", thin.about);
    }
}
