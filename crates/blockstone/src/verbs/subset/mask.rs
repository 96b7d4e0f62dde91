//! The options of masking.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use blockstone_base::units::Bytes;
use blockstone_subset::mask::{self, Given, Mask, Rule};
use blockstone_subset::{Catalogue, personal};
use blockstone_sys::secret;
use clap::{Args, ValueHint};

use crate::failure::Failure;
use crate::input;
use crate::purpose::Purpose;

/// Largest file with rules or a key.
const FILE_MAX: Bytes = Bytes::mib(1);
/// Fewest bytes of a key: shorter ones can be guessed.
const KEY_MIN: usize = 16;
const KEY_BYTES: usize = 32;

/// Maximum number of columns that a note names.
const NAMED: usize = 20;

/// How values are replaced.
#[derive(Args, Debug)]
#[command(next_help_heading = "Masking")]
pub struct MaskArgs {
    /// Mask a column and all that keys connect with it
    ///
    /// COLUMN=hash, =fake, =null or =FILE.toml; or those that FILE.toml lists.
    #[arg(long = "mask", value_name = "COLUMN=METHOD", id = "masks")]
    pub masks: Vec<String>,
    /// The secret key of masks, of 16 bytes or more; without it each subset has a new one
    #[arg(long, value_name = "FILE", requires = "masks", value_hint = ValueHint::FilePath)]
    #[arg(add = Purpose::Input)]
    pub mask_key: Option<PathBuf>,
}

impl MaskArgs {
    /// Returns the mask; `None` if nothing is masked.
    pub fn read(&self, catalogue: &Catalogue) -> Result<Option<Mask>> {
        if self.masks.is_empty() {
            return Ok(None);
        }
        let mut rules: Vec<Rule> = Vec::new();
        for given in &self.masks {
            match mask::parse(given)? {
                Given::Rule(rule) => rules.push(rule),
                Given::File(name) => rules.extend(mask::file(&name, &text(&name)?)?),
                Given::ColumnFile(pattern, name) => {
                    rules.push(mask::column_file(pattern, &name, &text(&name)?)?);
                }
            }
        }
        Ok(Some(Mask::new(&self.key()?, &rules, catalogue)?))
    }

    fn key(&self) -> Result<Vec<u8>> {
        let Some(path) = &self.mask_key else {
            let random = secret::random::<KEY_BYTES>();
            return Ok(random.context("read a key from /dev/urandom")?.to_vec());
        };
        let key = blockstone_sys::input::read(path, FILE_MAX).map_err(|error| {
            let hint = "name a file with the key of the masks";
            anyhow!(Failure::new(format!("read {}: {error}", path.display()), hint))
        })?;
        if key.len() < KEY_MIN {
            let hint = "head -c 32 /dev/urandom > FILE";
            bail!(Failure::new(
                format!("{}: a key of masks has {KEY_MIN} bytes or more", path.display()),
                hint
            ));
        }
        Ok(key)
    }
}

/// Columns that are masked, and columns that are not.
#[derive(Debug, Default)]
pub struct Masks {
    masked: Vec<String>,
    /// Columns that look personal but are not masked.
    unmasked: Vec<String>,
}

impl Masks {
    pub fn of(catalogue: &Catalogue, mask: Option<&Mask>) -> Self {
        let masked: BTreeMap<&str, &str> = mask.into_iter().flat_map(Mask::columns).collect();
        let found = personal::columns(catalogue);
        let found = found.filter(|(place, _)| !masked.contains_key(place.as_str()));
        let unmasked = found.map(|(place, what)| format!("{place} ({})", what.name())).collect();
        let masked = masked.iter().map(|(place, how)| format!("{place} ({how})")).collect();
        Self { masked, unmasked }
    }

    pub fn note(&self) -> Option<String> {
        named("Masked", &self.masked)
    }

    pub fn warning(&self) -> Option<String> {
        named("Columns that look personal, by their names, and are not masked", &self.unmasked)
    }
}

fn named(what: &str, columns: &[String]) -> Option<String> {
    let more = columns.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let columns = columns.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    (!columns.is_empty()).then(|| format!("{what}: {columns}{more}."))
}

fn text(name: &str) -> Result<String> {
    input::text(Path::new(name), FILE_MAX).map_err(|error| {
        anyhow!(input::failure(&format!("read {name}"), &error, "name a file of masks in TOML"))
    })
}
