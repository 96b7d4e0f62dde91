//! The layers of a chart as shapes, and the values they span.

use blockstone_base::table::Measure;

use super::super::ruler::Ruler;
use super::super::shapes::{Ink, Look, Shapes};
use super::{HEAT, HEATS, color};
use crate::chart::{Chart, Form, HeatCell, Layer, Point, Scale};

/// Number of points from which intervals are drawn as a band, not as whiskers.
const DENSE: usize = 40;
/// Share of the distance between two places that their bars take.
const BAR: f64 = 0.8;
/// Intervals that reach above the greatest value times this make an axis logarithmic.
const FAR: f64 = 4.0;
/// Levels above the greatest value times this do not extend the axis, which would flatten the data.
const NEAR: f64 = 3.0;

/// A point that stands on those of the layers below.
#[derive(Clone, Copy)]
struct Standing {
    x: f64,
    base: f64,
    /// Not a number for a gap.
    top: f64,
}

pub struct Layers<'a, 'b> {
    pub chart: &'a Chart,
    pub x: &'a Ruler,
    pub y: &'a Ruler,
    pub shapes: &'a mut Shapes<'b>,
}

/// Returns the places of a chart's points, each once, in order.
pub fn places(chart: &Chart) -> Vec<f64> {
    let points = chart.layers.iter().flat_map(|layer| layer.form.points());
    let mut places: Vec<f64> = points.filter(|it| it.y.is_some()).map(|point| point.x).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    places
}

/// Returns the chart, with a logarithmic vertical axis if its intervals reach so far above its
/// values that a linear one would flatten the values.
pub fn within(chart: &Chart) -> Chart {
    let stands = |layer: &Layer| match &layer.form {
        Form::Area(_) | Form::Heat(_) | Form::Bars { stacked: true, .. } => true,
        form => form.points().iter().any(|point| point.y.is_some_and(|y| y <= 0.0)),
    };
    let mut chart = chart.clone();
    let (_, highest) = ends(values(&chart), &chart.y.scale);
    let is_far = chart.y.scale == Scale::Linear && reached(&chart) > highest * FAR;
    if is_far && !chart.layers.iter().any(stands) {
        chart.y.scale = Scale::Log;
    }
    chart
}

/// Returns whether a chart counts things of which there are no parts.
pub fn are_whole(chart: &Chart) -> bool {
    let is_count = chart.y.measure == Measure::Count && chart.y.scale == Scale::Linear;
    is_count && values(chart).any(|y| y >= 1.0) && values(chart).all(|y| y.fract() == 0.0)
}

fn values(chart: &Chart) -> impl Iterator<Item = f64> {
    let points = chart.layers.iter().flat_map(|layer| layer.form.points());
    points.filter_map(|point| point.y)
}

/// Returns the greatest upper end of an interval.
fn reached(chart: &Chart) -> f64 {
    let points = chart.layers.iter().flat_map(|layer| layer.form.points());
    let ends = points.filter(|point| point.y.is_some()).filter_map(|point| point.interval);
    ends.map(|(_, high)| high).filter(|high| high.is_finite()).fold(0.0, f64::max)
}

/// Returns the range of values that a chart spans horizontally.
pub fn across(chart: &Chart) -> (f64, f64) {
    let points = chart.layers.iter().flat_map(|layer| layer.form.points()).map(|point| point.x);
    let heat = cells(chart).flat_map(|cell| [cell.x.0, cell.x.1]);
    let bands = chart.bands.iter().flat_map(|band| [band.from, band.to]);
    let (low, high) = ends(points.chain(heat).chain(bands), &chart.x.scale);
    // The first and the last bar extend beyond their points.
    let bars = chart.layers.iter().find(|layer| matches!(layer.form, Form::Bars { .. }));
    match (bars, &chart.x.scale) {
        (Some(bars), Scale::Linear | Scale::Time) => {
            let half = gap(bars.form.points(), false) / 2.0;
            (low - half, high + half)
        }
        (Some(bars), Scale::Log) => {
            let half = gap(bars.form.points(), true) / 2.0;
            (low / 10_f64.powf(half), high * 10_f64.powf(half))
        }
        _ => (low, high),
    }
}

/// Returns the range of values that a chart spans vertically, with levels that are near enough.
pub fn up(chart: &Chart) -> (f64, f64) {
    let mut values: Vec<f64> = cells(chart).flat_map(|cell| [cell.y.0, cell.y.1]).collect();
    let stood = stacked(chart);
    values.extend(stood.iter().flatten().flatten().map(|it| it.top));
    values.extend(self::values(chart));
    let (_, highest) = ends(values.iter().copied(), &chart.y.scale);
    let intervals = chart.layers.iter().flat_map(|layer| layer.form.points());
    let intervals = intervals.filter(|point| point.y.is_some()).filter_map(|it| it.interval);
    values.extend(intervals.flat_map(|(low, high)| [low, high]));
    let levels = chart.levels.iter().map(|level| level.y).filter(|y| *y <= highest * NEAR);
    values.extend(levels);
    let (low, high) = ends(values.into_iter(), &chart.y.scale);
    // The lowest bar has a height too.
    let is_bar = |layer: &Layer| matches!(layer.form, Form::Bars { .. });
    let has_bars = chart.y.scale == Scale::Log && chart.layers.iter().any(is_bar);
    (if has_bars { low / 2.0 } else { low }, high)
}

fn cells(chart: &Chart) -> impl Iterator<Item = &HeatCell> {
    chart.layers.iter().flat_map(|layer| match &layer.form {
        Form::Heat(cells) => cells.as_slice(),
        _ => &[],
    })
}

fn ends(values: impl Iterator<Item = f64>, scale: &Scale) -> (f64, f64) {
    let placed = values.filter(|v| v.is_finite() && !(*scale == Scale::Log && *v <= 0.0));
    placed.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
}

/// Returns place, base and top of the points of each layer that stands on others.
fn stacked(chart: &Chart) -> Vec<Option<Vec<Standing>>> {
    let mut areas: Vec<(f64, f64)> = Vec::new();
    let mut bars: Vec<(f64, f64)> = Vec::new();
    let stack = |tops: &mut Vec<(f64, f64)>, points: &[Point]| -> Vec<Standing> {
        let mut standing = Vec::new();
        for point in points {
            let at = tops.partition_point(|(x, _)| *x < point.x);
            if tops.get(at).is_none_or(|(x, _)| *x > point.x) {
                tops.insert(at, (point.x, 0.0));
            }
            let base = tops[at].1;
            let Some(y) = point.y.filter(|y| y.is_finite()) else {
                standing.push(Standing { x: point.x, base, top: f64::NAN });
                continue;
            };
            tops[at].1 = base + y;
            standing.push(Standing { x: point.x, base, top: base + y });
        }
        standing
    };
    let layers = chart.layers.iter().map(|layer| match &layer.form {
        Form::Area(points) => Some(stack(&mut areas, points)),
        Form::Bars { points, stacked: true } => Some(stack(&mut bars, points)),
        _ => None,
    });
    layers.collect()
}

/// Returns the least distance between places; on a logarithmic axis that of their logarithms.
fn gap(points: &[Point], log: bool) -> f64 {
    let place = |point: &Point| if log { point.x.max(f64::MIN_POSITIVE).log10() } else { point.x };
    let mut places: Vec<f64> = points.iter().map(place).collect();
    places.sort_by(f64::total_cmp);
    let gaps = places.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0.0);
    let gap = gaps.fold(f64::INFINITY, f64::min);
    if gap.is_finite() {
        gap
    } else if log {
        0.3
    } else {
        1.0
    }
}

impl Layers<'_, '_> {
    pub fn draw(mut self) {
        let stood = stacked(self.chart);
        let grouped = |layer: &&Layer| matches!(layer.form, Form::Bars { stacked: false, .. });
        let groups = self.chart.layers.iter().filter(grouped).count().max(1);
        let mut group = 0;
        for (layer, standing) in self.chart.layers.iter().zip(&stood) {
            match (&layer.form, standing) {
                (Form::Area(_), Some(standing)) => self.area_of(layer, standing),
                (Form::Bars { points, .. }, Some(standing)) => {
                    self.bars(layer, points, standing, (0, 1));
                }
                (Form::Bars { points, .. }, None) => {
                    let flat =
                        |p: &Point| Standing { x: p.x, base: 0.0, top: p.y.unwrap_or(f64::NAN) };
                    let flat: Vec<Standing> = points.iter().map(flat).collect();
                    self.bars(layer, points, &flat, (group, groups));
                    group += 1;
                }
                (Form::Line { points, dashed, marks }, _) => {
                    self.line(layer, points, *dashed);
                    if *marks {
                        self.dots(layer, points);
                    }
                }
                (Form::Dots(points), _) => {
                    self.whiskers(layer, points);
                    self.dots(layer, points);
                }
                (Form::Heat(cells), _) => self.heat(cells),
                (Form::Area(_), None) => {}
            }
        }
    }

    fn area_of(&mut self, layer: &Layer, standing: &[Standing]) {
        let ink = Look(color(layer.color), Ink::Fill, 1.0);
        for run in standing.split(|it| it.top.is_nan()).filter(|run| !run.is_empty()) {
            if let [Standing { x, base, top }] = *run {
                let line = Look(color(layer.color), Ink::Line, 1.0);
                self.shapes.line([(x, base), (x, top)], line);
                continue;
            }
            let top = run.iter().map(|it| (it.x, it.top));
            let base = run.iter().rev().map(|it| (it.x, it.base));
            self.shapes.polygon(top.chain(base), ink);
        }
    }

    /// Draws bars of the `group.0`th of `group.1` layers that stand side by side.
    fn bars(
        &mut self,
        layer: &Layer,
        points: &[Point],
        standing: &[Standing],
        group: (usize, usize),
    ) {
        let log = self.chart.x.scale == Scale::Log;
        let width = gap(points, log) * BAR / group.1 as f64;
        let left = (group.0 as f64 - group.1 as f64 / 2.0) * width;
        let aside = |x: f64, by: f64| if log { x * 10_f64.powf(by) } else { x + by };
        for (point, &Standing { x, base, top }) in points.iter().zip(standing) {
            if top.is_nan() {
                continue;
            }
            // A bar on a logarithmic axis stands on the axis's lower end.
            let base = if self.chart.y.scale == Scale::Log { self.y.low } else { base };
            let corners = [(aside(x, left), base), (aside(x, left + width * 0.96), top)];
            let opacity = if point.condemned { 0.25 } else { 1.0 };
            let ink = Look(color(layer.color), Ink::Fill, opacity);
            self.shapes.rectangle(corners, ink);
            self.whisker(aside(x, left + width / 2.0), point, super::INK);
        }
    }

    fn line(&mut self, layer: &Layer, points: &[Point], dashed: bool) {
        let ink = Look(color(layer.color), if dashed { Ink::Dashed } else { Ink::Line }, 1.0);
        let absent = |point: &Point| !point.y.is_some_and(|y| self.y.holds(y));
        for run in points.split(absent).filter(|run| !run.is_empty()) {
            self.interval(layer, run);
            let line: Vec<(f64, f64)> =
                run.iter().filter_map(|point| Some((point.x, point.y?))).collect();
            if let [(x, y)] = line[..] {
                let dot = Look(color(layer.color), Ink::Dot, 1.0);
                self.shapes.dot((x, y), dot);
            }
            self.shapes.line(line, ink);
        }
    }

    fn interval(&mut self, layer: &Layer, run: &[Point]) {
        if run.len() < DENSE {
            return self.whiskers(layer, run);
        }
        let held = |point: &Point| {
            let (low, high) = point.interval?;
            let ends = (low.max(self.y.low.min(self.y.high)), high.min(self.y.high));
            (ends.0.is_finite() && ends.1.is_finite()).then_some((point.x, ends.0, ends.1))
        };
        let ends: Vec<(f64, f64, f64)> = run.iter().filter_map(held).collect();
        if ends.len() < 2 {
            return;
        }
        let high = ends.iter().map(|(x, _, high)| (*x, *high));
        let low = ends.iter().rev().map(|(x, low, _)| (*x, *low));
        let ink = Look(color(layer.color), Ink::Fill, 0.18);
        self.shapes.polygon(high.chain(low), ink);
    }

    fn whiskers(&mut self, layer: &Layer, points: &[Point]) {
        for point in points {
            self.whisker(point.x, point, color(layer.color));
        }
    }

    fn whisker(&mut self, x: f64, point: &Point, color: u8) {
        let Some((low, high)) = point.interval.filter(|_| point.y.is_some()) else { return };
        let ends = (low.max(self.y.low), high.min(self.y.high));
        if !(ends.0.is_finite() && ends.1.is_finite() && ends.0 < ends.1) {
            return;
        }
        let line = [(x, ends.0), (x, ends.1)];
        self.shapes.line(line, Look(color, Ink::Hair, 1.0));
    }

    fn dots(&mut self, layer: &Layer, points: &[Point]) {
        let placed = points.iter().filter(|point| self.x.holds(point.x));
        let placed: Vec<(&Point, f64)> =
            placed.filter_map(|p| Some((p, p.y.filter(|y| self.y.holds(*y))?))).collect();
        let dot = Look(color(layer.color), Ink::Dot, 1.0);
        for (point, y) in &placed {
            self.shapes.dot((point.x, *y), dot);
        }
        let hole = Look(color(layer.color), Ink::Hole, 1.0);
        for (point, y) in placed.iter().filter(|(point, _)| point.condemned) {
            self.shapes.dot((point.x, *y), hole);
        }
    }

    /// Draws cells; those of one colour are one path.
    fn heat(&mut self, cells: &[HeatCell]) {
        let level =
            |cell: &HeatCell| (cell.heat.clamp(0.0, 1.0) * f64::from(HEATS - 1)).round() as u8;
        for step in 0..HEATS {
            let ink = Look(HEAT + step, Ink::Fill, 1.0);
            for cell in cells.iter().filter(|cell| !cell.heat.is_nan() && level(cell) == step) {
                let corners = [(cell.x.0, cell.y.0), (cell.x.1, cell.y.1)];
                self.shapes.rectangle(corners, ink);
            }
        }
    }
}
