//! The reports of a comparison: of figures, and of what every layer did.

pub mod figures;
pub mod layers;
