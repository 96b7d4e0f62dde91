//! The shapes of a chart as SVG paths: a backend for plotters that writes classes in place of
//! colours, so that a style sheet decides between light, dark and colour-blind palettes, and that
//! leaves strokes and dots unscaled, so that a drawing fills whatever width the page has.
//!
//! Neighbouring shapes of the same look become one path.

use std::convert::Infallible;
use std::fmt::Write as _;

use plotters::style::{RGBAColor, RGBColor, ShapeStyle};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, DrawingBackend, DrawingErrorKind,
};

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

/// How a shape is painted; travels through plotters as the green of its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    Fill = 0,
    /// A stroke of one or two pixels.
    Line = 1,
    Dashed = 2,
    /// A thin stroke: grid lines, intervals.
    Hair = 3,
    Dot = 4,
    /// The inside of a hollow dot.
    Hole = 5,
}

impl Ink {
    /// Its class in the style sheet.
    const fn class(green: u8) -> &'static str {
        match green {
            0 => "f",
            1 => "s",
            2 => "s da",
            3 => "s hair",
            4 => "dot",
            _ => "dot hole",
        }
    }
}

/// The style of a shape in the colour of class `k{color}`.
pub fn style(color: u8, ink: Ink, opacity: f64) -> ShapeStyle {
    let RGBColor(r, g, b) = RGBColor(color, ink as u8, 0);
    ShapeStyle { color: RGBAColor(r, g, b, opacity), filled: ink == Ink::Fill, stroke_width: 1 }
}

#[derive(Clone, Copy, PartialEq)]
struct Look {
    color: u8,
    ink: u8,
    opacity: f64,
}

/// Writes the shapes that plotters draws into a text.
pub struct Shapes<'a> {
    out: &'a mut String,
    size: (u32, u32),
    pending: Option<(Look, String)>,
}

impl<'a> Shapes<'a> {
    pub fn new(out: &'a mut String, size: (u32, u32)) -> Self {
        Self { out, size, pending: None }
    }

    fn add(&mut self, color: BackendColor, shape: &str) {
        let look = Look { color: color.rgb.0, ink: color.rgb.1, opacity: color.alpha };
        match &mut self.pending {
            Some((pending, data)) if *pending == look => data.push_str(shape),
            _ => {
                self.flush();
                self.pending = Some((look, shape.to_owned()));
            }
        }
    }

    fn flush(&mut self) {
        let Some((look, data)) = self.pending.take() else { return };
        let class = Ink::class(look.ink);
        let _ = write!(self.out, "<path class=\"{class} k{}\"", look.color);
        if look.opacity < 1.0 {
            let _ = write!(self.out, " opacity=\"{}\"", look.opacity);
        }
        let _ = write!(self.out, " d=\"{data}\"/>");
    }
}

impl Drop for Shapes<'_> {
    fn drop(&mut self) {
        self.flush();
    }
}

impl DrawingBackend for Shapes<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        self.flush();
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, color: BackendColor) -> Drawn {
        self.add(color, &format!("M{x} {y}h1v1h-1z"));
        Ok(())
    }

    fn draw_line<S: BackendStyle>(&mut self, a: BackendCoord, b: BackendCoord, style: &S) -> Drawn {
        self.draw_path([a, b], style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        (left, top): BackendCoord,
        (right, bottom): BackendCoord,
        style: &S,
        _fill: bool,
    ) -> Drawn {
        let (width, height) = (right - left, bottom - top);
        self.add(style.color(), &format!("M{left} {top}h{width}v{height}h{}z", -width));
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        self.add(style.color(), &path_data(path));
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        (x, y): BackendCoord,
        _radius: u32,
        style: &S,
        _fill: bool,
    ) -> Drawn {
        // A line of no length with round ends stays round when the drawing is stretched.
        self.add(style.color(), &format!("M{x} {y}h0"));
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Drawn {
        self.add(style.color(), &(path_data(corners) + "z"));
        Ok(())
    }
}

/// Path data with relative coordinates, which are short.
fn path_data(points: impl IntoIterator<Item = BackendCoord>) -> String {
    let mut data = String::new();
    let mut last: Option<BackendCoord> = None;
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
