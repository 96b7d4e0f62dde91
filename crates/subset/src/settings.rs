//! Settings of a sample.

/// Selection of the seeds of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Chosen {
    /// A share of the rows.
    #[default]
    Share,
    All,
    /// Rows that match the source's condition for this table.
    Matching,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Share of the rows of each table, in percent.
    pub percent: f64,
    pub seed: u64,
    /// By table; the default for missing tables is a share.
    pub chosen: Vec<Chosen>,
    /// Maximum number of seeds with the same parent, for each key.
    pub cap: Option<u32>,
    /// Whether rows are seeds if their parent is one.
    pub stratified: bool,
    /// Keys of the catalogue that are not followed, because they are NULL in the sample.
    pub nulled: Vec<usize>,
    /// Limit on the memory for keys and row locators, in bytes; `None` means unlimited.
    pub memory: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            percent: 1.0,
            seed: 0,
            chosen: Vec::new(),
            cap: None,
            stratified: false,
            nulled: Vec::new(),
            memory: None,
        }
    }
}

impl Settings {
    pub fn chosen(&self, table: usize) -> Chosen {
        self.chosen.get(table).copied().unwrap_or_default()
    }
}
