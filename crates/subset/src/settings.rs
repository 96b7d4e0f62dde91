//! What the user asked for.

/// Which rows of a table are seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Chosen {
    /// A share of them.
    #[default]
    Share,
    All,
    /// Those that match the condition that the source has for this table.
    Matching,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Of the rows of each table, in percent.
    pub percent: f64,
    pub seed: u64,
    /// By table; a table that is missing here has a share.
    pub chosen: Vec<Chosen>,
    /// The most seeds with the same parent, for each key.
    pub cap: Option<u32>,
    /// Whether rows are seeds where their parent is one.
    pub stratified: bool,
    /// Bytes of memory that keys and places of rows may take; none: any.
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
            memory: None,
        }
    }
}

impl Settings {
    pub fn chosen(&self, table: usize) -> Chosen {
        self.chosen.get(table).copied().unwrap_or_default()
    }
}
