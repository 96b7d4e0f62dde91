//! A chart as data: axes, layers and marks. The page draws it; the terminal draws its lines as rows
//! of bars.

use blockstone_base::table::{Measure, Text};

#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Unique anchor on the page, in kebab case.
    pub name: Text,
    pub title: Text,
    /// Features to look for in it; its numbers are in tables.
    pub about: String,
    pub x: Axis,
    pub y: Axis,
    /// Drawn in this order; areas and stacked bars stand on one another.
    pub layers: Vec<Layer>,
    /// Named spans of the horizontal axis, such as phases.
    pub bands: Vec<Band>,
    /// Named lines at a height, such as the number of processors.
    pub levels: Vec<Level>,
    pub width: Width,
    /// Height of the drawing in CSS pixels.
    pub height: u16,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Quantity that it shows, with the unit if the measure does not say it.
    pub title: Text,
    pub measure: Measure,
    pub scale: Scale,
}

/// Mapping of values to places on an axis.
#[derive(Clone, Debug, PartialEq)]
pub enum Scale {
    /// From zero.
    Linear,
    /// Logarithmic; values at or below zero are left out.
    Log,
    /// Nanoseconds since the recording began: all such charts share their cursor and window.
    Time,
    /// Names; values are indices into them.
    Names(Vec<String>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    pub name: String,
    pub color: Color,
    pub form: Form,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// A line; a point without a value interrupts it.
    Line {
        points: Vec<Point>,
        dashed: bool,
        marks: bool,
    },
    Dots(Vec<Point>),
    /// An area that stands on the areas before it.
    Area(Vec<Point>),
    /// Bars, next to those of other layers or on top of them.
    Bars {
        points: Vec<Point>,
        stacked: bool,
    },
    /// Cells coloured by a value from 0 to 1.
    Heat(Vec<HeatCell>),
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: Option<f64>,
    /// Ends of the 95 % interval of `y`.
    pub interval: Option<(f64, f64)>,
    /// Whether a rule condemns it; it is then struck through.
    pub condemned: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct HeatCell {
    pub x: (f64, f64),
    pub y: (f64, f64),
    /// 0 for the palest, 1 for the strongest colour.
    pub heat: f64,
    /// The value in words, for the pointer.
    pub text: String,
}

/// A named span of the horizontal axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    pub from: f64,
    pub to: f64,
    pub name: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    pub y: f64,
    pub name: String,
}

/// Part of a row that a chart takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Width {
    Whole,
    #[default]
    Half,
    Third,
}

/// A colour by meaning; the page has a light, a dark and a colour-blind palette.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// The nth colour for series without a meaning of their own.
    Series(u8),
    Grey,
    Bad,
    /// Colours that Oracle's charts use for processor time and each class of wait.
    Cpu,
    SystemIo,
    UserIo,
    Commit,
    Concurrency,
    Configuration,
    Administrative,
    Application,
    Network,
    Cluster,
    RunQueue,
    OtherWait,
}

impl Chart {
    /// Creates a chart without layers, half a row wide.
    pub fn new(name: impl Into<Text>, title: impl Into<Text>, x: Axis, y: Axis) -> Self {
        Self {
            name: name.into(),
            title: title.into(),
            about: String::new(),
            x,
            y,
            layers: Vec::new(),
            bands: Vec::new(),
            levels: Vec::new(),
            width: Width::Half,
            height: 300,
        }
    }

    #[must_use]
    pub fn about(self, about: impl Into<String>) -> Self {
        Self { about: about.into(), ..self }
    }

    /// Returns the same chart over the whole width, `height` pixels high.
    #[must_use]
    pub fn wide(self, height: u16) -> Self {
        Self { width: Width::Whole, height, ..self }
    }

    /// Returns the same chart over a third of the width.
    #[must_use]
    pub fn third(self) -> Self {
        Self { width: Width::Third, ..self }
    }

    /// Returns the same chart, with its lines drawn as stacked areas.
    #[must_use]
    pub fn stacked(mut self) -> Self {
        for layer in &mut self.layers {
            if let Form::Line { points, .. } = &mut layer.form {
                layer.form = Form::Area(std::mem::take(points));
            }
        }
        self
    }

    #[must_use]
    pub fn level(mut self, y: f64, name: impl Into<String>) -> Self {
        self.levels.push(Level { y, name: name.into() });
        self
    }

    /// Returns the same chart with a named span of the horizontal axis.
    #[must_use]
    pub fn band(mut self, from: f64, to: f64, name: impl Into<String>) -> Self {
        self.bands.push(Band { from, to, name: name.into() });
        self
    }

    /// Returns the same chart with one more layer, unless there is nothing to draw.
    #[must_use]
    pub fn layer(mut self, name: impl Into<String>, color: Color, form: Form) -> Self {
        if !form.is_empty() {
            self.layers.push(Layer { name: name.into(), color, form });
        }
        self
    }
}

impl Axis {
    pub fn new(title: impl Into<Text>, measure: Measure) -> Self {
        Self { title: title.into(), measure, scale: Scale::Linear }
    }

    /// Creates a time axis in nanoseconds since the recording began.
    pub fn time() -> Self {
        Self { title: "".into(), measure: Measure::Nanoseconds, scale: Scale::Time }
    }

    #[must_use]
    pub fn log(self) -> Self {
        Self { scale: Scale::Log, ..self }
    }

    pub fn names(title: impl Into<Text>, names: Vec<String>) -> Self {
        Self { title: title.into(), measure: Measure::Text, scale: Scale::Names(names) }
    }
}

impl Form {
    pub fn line(points: impl IntoIterator<Item = (f64, Option<f64>)>) -> Self {
        let points = points.into_iter().map(Point::from).collect();
        Self::Line { points, dashed: false, marks: false }
    }

    pub fn area(points: impl IntoIterator<Item = (f64, Option<f64>)>) -> Self {
        Self::Area(points.into_iter().map(Point::from).collect())
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Heat(cells) => cells.is_empty(),
            form => form.points().iter().all(|point| point.y.is_none()),
        }
    }

    /// Returns whether it covers what lies below it.
    pub const fn is_filled(&self) -> bool {
        matches!(self, Self::Area(_) | Self::Bars { .. } | Self::Heat(_))
    }

    /// Returns its points; a heat map has none.
    pub fn points(&self) -> &[Point] {
        match self {
            Self::Line { points, .. }
            | Self::Bars { points, .. }
            | Self::Dots(points)
            | Self::Area(points) => points,
            Self::Heat(_) => &[],
        }
    }
}

impl From<(f64, Option<f64>)> for Point {
    fn from((x, y): (f64, Option<f64>)) -> Self {
        Self { x, y, ..Self::default() }
    }
}
