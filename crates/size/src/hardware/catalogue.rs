//! Catalogue of hardware to buy: a dated TOML file that the user owns. [`EXAMPLE`] is one.
//!
//! ```toml
//! about = "our data centre, list prices"
//! dated = "2026-11-01"          # prices and limits change: a report says "as of"
//!
//! [[unit]]
//! name = "disk-15k"
//! source = "measured with calibrate"
//! iops = 180
//! gb = 600
//! usd = 350
//!
//! [[unit]]
//! name = "cell"
//! of = "disk-15k"               # limits that it does not state are 12 times those of the disk
//! count = 12
//!
//! [[licence]]
//! name = "database"
//! metric = "core"               # core, vcpu or socket
//! factor = 0.5                  # licences per core, vcpu or socket
//! usd = 1000
//! ```

use blockstone_base::hint::Hint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::HardwareError;
use super::licence::Licence;
use super::unit::Unit;

/// The default catalogue, for users to copy and edit.
pub const EXAMPLE: &str = include_str!("../../data/catalogue.toml");

/// Deeper nesting of units made of units is a mistake.
const DEPTH_MOST: usize = 8;
const TEXT_MOST: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Catalogue {
    pub about: String,
    /// Date of the figures, for units without one of their own.
    pub dated: String,
    pub units: Vec<Unit>,
    pub licences: Vec<Licence>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    about: String,
    dated: String,
    #[serde(default, rename = "unit")]
    units: Vec<Unit>,
    #[serde(default, rename = "licence")]
    licences: Vec<Licence>,
}

#[derive(Debug, PartialEq, thiserror::Error, Hint)]
pub enum CatalogueError {
    #[error("read catalogue {name}{at}: {why}")]
    #[hint("`blockstone size --help` describes catalogues")]
    Unreadable { name: String, at: String, why: String },
    #[error("use catalogue {name}: {what}")]
    #[hint("{hint}")]
    Nonsense { name: String, what: String, hint: &'static str },
}

/// A number of units packed into larger ones: 84 disks are 7 cells, which are a half rack.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Packed {
    pub unit: String,
    pub units: u64,
    /// The exact number of larger units, before rounding up.
    pub exact: f64,
}

impl Catalogue {
    pub fn example() -> Result<Self, CatalogueError> {
        Self::parse("example", EXAMPLE)
    }

    /// Parses a catalogue; `name` is for error messages.
    pub fn parse(name: &str, text: &str) -> Result<Self, CatalogueError> {
        let nonsense = |what: String, hint| {
            let name = name.to_owned();
            CatalogueError::Nonsense { name, what, hint }
        };
        if text.len() > TEXT_MOST {
            let what = format!("it has {} bytes", text.len());
            return Err(nonsense(what, "at most 1 MiB; is it a catalogue?"));
        }
        let file: File = toml::from_str(text).map_err(|error| unreadable(name, text, &error))?;
        let mut catalogue = Self {
            about: file.about,
            dated: file.dated,
            units: file.units,
            licences: file.licences,
        };
        catalogue.check().map_err(|(what, hint)| nonsense(what, hint))?;
        let units = catalogue.units.iter_mut().map(|unit| &mut unit.dated);
        let licences = catalogue.licences.iter_mut().map(|licence| &mut licence.dated);
        for dated in units.chain(licences).filter(|dated| dated.is_empty()) {
            dated.clone_from(&catalogue.dated);
        }
        for unit in &mut catalogue.units {
            *unit = unit.clone().derived();
        }
        Ok(catalogue)
    }

    fn check(&self) -> Result<(), (String, &'static str)> {
        if self.dated.trim().is_empty() {
            return Err(("its `dated` is empty".to_owned(), "the day of its facts"));
        }
        for unit in &self.units {
            let named = |what: &str| format!("unit {:?} {what}", unit.name);
            if self.units.iter().filter(|other| other.name == unit.name).count() > 1 {
                return Err((named("occurs twice"), "give each a name of its own"));
            }
            unit.check()?;
            if self.chain(&unit.name).is_none() {
                let hint = "`of` names another unit, and no unit is made of itself";
                return Err((named("is made of what the catalogue does not have"), hint));
            }
        }
        for licence in &self.licences {
            licence.check().map_err(|what| (what, "numbers above zero"))?;
        }
        Ok(())
    }

    fn raw(&self, name: &str) -> Option<&Unit> {
        self.units.iter().find(|unit| unit.name == name)
    }

    /// Returns a unit and the units that it is made of, outermost first.
    fn chain(&self, name: &str) -> Option<Vec<&Unit>> {
        let mut chain = vec![self.raw(name)?];
        while let Some(inner) = chain.last().and_then(|unit| unit.of.as_deref()) {
            if chain.len() >= DEPTH_MOST {
                return None;
            }
            chain.push(self.raw(inner)?);
        }
        Some(chain)
    }

    /// Returns a unit with all its limits, including those that follow from the unit it is made of.
    pub fn unit(&self, name: &str) -> Result<Unit, HardwareError> {
        let unknown = || HardwareError::Unknown {
            what: "unit",
            name: name.to_owned(),
            known: names(self.units.iter().map(|unit| unit.name.as_str())),
        };
        let chain = self.chain(name).ok_or_else(unknown)?;
        let whole = chain.into_iter().rev().cloned().reduce(|inner, outer| outer.made_of(&inner));
        whole.ok_or_else(unknown)
    }

    pub fn licence(&self, name: &str) -> Result<&Licence, HardwareError> {
        let unknown = || HardwareError::Unknown {
            what: "licence",
            name: name.to_owned(),
            known: names(self.licences.iter().map(|licence| licence.name.as_str())),
        };
        self.licences.iter().find(|licence| licence.name == name).ok_or_else(unknown)
    }

    /// Packs `units` of `name` into larger units made of them, step by step. If there are several
    /// sizes, takes the smallest one that suffices alone, or else as many of the largest as needed.
    pub fn packed(&self, name: &str, units: u64) -> Vec<Packed> {
        let mut steps: Vec<Packed> = Vec::new();
        let (mut inner, mut needed) = (name.to_owned(), units);
        while steps.len() < DEPTH_MOST {
            let sizes = self.units.iter().filter(|unit| unit.of.as_deref() == Some(&inner));
            let mut sizes: Vec<(u64, &str)> =
                sizes.filter_map(|unit| Some((unit.count?, unit.name.as_str()))).collect();
            sizes.sort_unstable();
            let enough = sizes.iter().find(|(count, _)| *count >= needed).or(sizes.last());
            let Some(&(count, outer)) = enough else { break };
            let exact = needed as f64 / count as f64;
            (inner, needed) = (outer.to_owned(), needed.div_ceil(count));
            steps.push(Packed { unit: inner.clone(), units: needed, exact });
        }
        steps
    }
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 30;
    let names: Vec<&str> = names.take(SHOWN).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn unreadable(name: &str, text: &str, error: &toml::de::Error) -> CatalogueError {
    let at = error.span().map_or_else(String::new, |span| {
        let before = text.get(..span.start).unwrap_or(text);
        format!(", line {}", before.matches('\n').count() + 1)
    });
    let why = error.message().lines().map(str::trim).collect::<Vec<_>>().join("; ");
    CatalogueError::Unreadable { name: name.to_owned(), at, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_sound_and_says_where_and_when() {
        let catalogue = Catalogue::example().unwrap();
        for unit in &catalogue.units {
            let whole = catalogue.unit(&unit.name).unwrap();
            assert!(!whole.dated.is_empty(), "{}", unit.name);
            assert!(!unit.source.is_empty() || unit.of.is_some(), "{}", unit.name);
        }
        for licence in &catalogue.licences {
            assert!(!licence.dated.is_empty() && !licence.source.is_empty(), "{}", licence.name);
        }
    }

    #[test]
    fn what_is_made_of_others_has_their_limits_unless_it_states_its_own() {
        let catalogue = Catalogue::example().unwrap();
        let cell = catalogue.unit("cell").unwrap();
        assert_eq!((cell.iops, cell.gb), (Some(2160.0), Some(7200.0)));
        let half = catalogue.unit("rack-half").unwrap();
        assert_eq!((half.iops, half.gb), (Some(25_000.0), Some(50_400.0)));
        let error = catalogue.unit("tape").unwrap_err().told();
        assert!(error.contains("tape") && error.contains("disk-15k"), "{error}");
    }

    #[test]
    fn disks_are_packed_into_cells_and_racks() {
        let catalogue = Catalogue::example().unwrap();
        let packed = |disks| {
            let steps = catalogue.packed("disk-15k", disks);
            steps.into_iter().map(|step| (step.units, step.unit)).collect::<Vec<_>>()
        };
        assert_eq!(packed(84), [(7, "cell".to_owned()), (1, "rack-half".to_owned())]);
        assert_eq!(packed(85), [(8, "cell".to_owned()), (1, "rack-full".to_owned())]);
        assert_eq!(packed(12 * 15), [(15, "cell".to_owned()), (2, "rack-full".to_owned())]);
        assert_eq!(catalogue.packed("tape", 5), []);
        let all = catalogue.packed("disk-15k", u64::MAX);
        assert_eq!(all.len(), 2);
    }

    #[test]
    fn an_error_names_the_line_or_the_unit() {
        let head = "about = \"mine\"\ndated = \"2026-01-01\"\n";
        let parse = |rest: &str| Catalogue::parse("mine.toml", &format!("{head}{rest}"));
        for (bad, said) in [
            ("[[unit]]\nname = \"a\"\nipos = 5\n", "line 5"),
            ("[[unit]]\nname = \"a\"\niops = \"many\"\n", "line 5"),
            ("[[unit]]\nname = \"a\"\niops = = 5\n", "line 5"),
            ("[[unit]]\niops = 5\n", "name"),
            ("[[unit]]\nname = \"a\"\niops = 0\n", "iops = 0"),
            ("[[unit]]\nname = \"a\"\ngb = nan\n", "gb = NaN"),
            ("[[unit]]\nname = \"a\"\ngb = -1\n", "gb = -1"),
            ("[[unit]]\nname = \"a\"\n[[unit]]\nname = \"a\"\n", "twice"),
            ("[[unit]]\nname = \"a\"\nof = \"a\"\ncount = 2\n", "does not have"),
            ("[[unit]]\nname = \"a\"\nof = \"b\"\ncount = 2\n", "does not have"),
            ("[[unit]]\nname = \"a\"\ncount = 2\n", "only one"),
            ("[[unit]]\nname = \"a\"\nflash = \"plc\"\n", "flash"),
            ("[[licence]]\nname = \"l\"\nmetric = \"core\"\nfactor = 0\n", "impossible"),
            ("[[licence]]\nname = \"l\"\nmetric = \"user\"\nfactor = 1\n", "line 5"),
        ] {
            let error = parse(bad).unwrap_err().told();
            assert!(error.contains(said) && error.contains("mine.toml"), "{bad}: {error}");
            assert_eq!(error.lines().count(), 2, "{error}");
        }
        let long = "#".repeat(TEXT_MOST);
        assert!(parse(&long).unwrap_err().told().contains("at most 1 MiB"));
        assert!(parse("").is_ok());
    }
}
