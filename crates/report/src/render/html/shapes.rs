//! The shapes of a chart as SVG paths, in classes instead of colours, so that the style sheet
//! chooses among light, dark and colour-blind palettes. Strokes and dots keep their size when the
//! drawing is stretched to the width of the page.
//!
//! Consecutive shapes with the same look become one path.

use std::fmt::Write as _;

use super::ruler::Ruler;

/// Kind of fill or stroke of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    Fill,
    /// A stroke of one or two pixels.
    Line,
    Dashed,
    /// A thin stroke: grid lines, intervals.
    Hair,
    Dot,
    /// The inside of a hollow dot.
    Hole,
}

impl Ink {
    /// Returns its class in the style sheet.
    const fn class(self) -> &'static str {
        match self {
            Self::Fill => "f",
            Self::Line => "s",
            Self::Dashed => "s da",
            Self::Hair => "s hair",
            Self::Dot => "dot",
            Self::Hole => "dot hole",
        }
    }
}

/// The colour of class `k{color}`, the ink and the opacity.
#[derive(Clone, Copy, PartialEq)]
pub struct Look(pub u8, pub Ink, pub f64);

/// Draws values at their places on two rulers. Values outside are moved to the edge.
pub struct Shapes<'a> {
    x: &'a Ruler,
    y: &'a Ruler,
    size: (u32, u32),
    out: String,
    pending: Option<(Look, String)>,
}

impl<'a> Shapes<'a> {
    pub fn new(x: &'a Ruler, y: &'a Ruler, size: (u32, u32)) -> Self {
        Self { x, y, size, out: String::new(), pending: None }
    }

    pub fn line(&mut self, points: impl IntoIterator<Item = (f64, f64)>, look: Look) {
        let data = self.path(points);
        self.add(look, &data);
    }

    pub fn polygon(&mut self, corners: impl IntoIterator<Item = (f64, f64)>, look: Look) {
        let data = self.path(corners) + "z";
        self.add(look, &data);
    }

    pub fn rectangle(&mut self, corners: [(f64, f64); 2], look: Look) {
        let [a, b] = corners.map(|corner| self.place(corner));
        let (left, top) = (a.0.min(b.0), a.1.min(b.1));
        let (width, height) = (a.0.max(b.0) - left, a.1.max(b.1) - top);
        self.add(look, &format!("M{left} {top}h{width}v{height}h{}z", -width));
    }

    pub fn dot(&mut self, at: (f64, f64), look: Look) {
        let (x, y) = self.place(at);
        // A line of zero length with round ends stays round when the drawing is stretched.
        self.add(look, &format!("M{x} {y}h0"));
    }

    /// Returns all paths.
    pub fn finish(mut self) -> String {
        self.flush();
        self.out
    }

    fn place(&self, (x, y): (f64, f64)) -> (i32, i32) {
        let (width, height) = self.size;
        let at =
            |place: f64, length: u32| (place.clamp(0.0, 1.0) * f64::from(length)).round() as i32;
        (at(self.x.place(x), width), height as i32 - at(self.y.place(y), height))
    }

    fn path(&self, points: impl IntoIterator<Item = (f64, f64)>) -> String {
        path_data(points.into_iter().map(|point| self.place(point)))
    }

    fn add(&mut self, look: Look, shape: &str) {
        match &mut self.pending {
            Some((pending, data)) if *pending == look => data.push_str(shape),
            _ => {
                self.flush();
                self.pending = Some((look, shape.to_owned()));
            }
        }
    }

    fn flush(&mut self) {
        let Some((Look(color, ink, opacity), data)) = self.pending.take() else { return };
        let _ = write!(self.out, "<path class=\"{} k{color}\"", ink.class());
        if opacity < 1.0 {
            let _ = write!(self.out, " opacity=\"{opacity}\"");
        }
        let _ = write!(self.out, " d=\"{data}\"/>");
    }
}

/// Returns path data with relative coordinates, which are short.
fn path_data(points: impl IntoIterator<Item = (i32, i32)>) -> String {
    let mut data = String::new();
    let mut last: Option<(i32, i32)> = None;
    for (x, y) in points {
        match last {
            None => {
                let _ = write!(data, "M{x} {y}");
            }
            Some(last) if last == (x, y) => continue,
            Some((last_x, last_y)) => {
                let (dx, dy) = (x - last_x, y - last_y);
                let before = match data.contains('l') {
                    false => "l",
                    true if dx < 0 => "",
                    true => " ",
                };
                let between = if dy < 0 { "" } else { " " };
                let _ = write!(data, "{before}{dx}{between}{dy}");
            }
        }
        last = Some((x, y));
    }
    data
}
