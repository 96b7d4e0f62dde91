//! Five blocks of ten pages, small enough to watch: why flash collects garbage, step by step.

pub const BLOCKS: usize = 5;
/// Pages of a block.
pub const PAGES: usize = 10;
pub const VISIBLE: usize = 38;
/// Pages that the host keeps writing while garbage is collected.
const WRITTEN: usize = 30;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cell {
    /// Erased: can be programmed once.
    #[default]
    Free,
    /// Holds a page that has been overwritten since.
    Stale,
    /// Holds this page of the host.
    Used(u8),
}

/// A picture of the blocks with the action that led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub text: String,
    pub blocks: [[Cell; PAGES]; BLOCKS],
    pub host_pages: u32,
    pub programs: u32,
    pub erases: u32,
    /// Pages in use.
    pub used_pages: usize,
    pub stale_pages: usize,
    pub free_pages: usize,
}

#[derive(Clone, Debug, Default)]
struct Toy {
    blocks: [[Cell; PAGES]; BLOCKS],
    /// By page of the host.
    places: Vec<Option<(usize, usize)>>,
    host_pages: u32,
    programs: u32,
    erases: u32,
    steps: Vec<Step>,
}

/// Returns the story, with or without garbage collection. Without it, the device ends read-only.
pub fn story(collects: bool) -> Vec<Step> {
    let mut toy = Toy { places: vec![None; VISIBLE], ..Toy::default() };
    toy.show(format!(
        "{BLOCKS} blocks of {PAGES} pages, all erased. The host sees {VISIBLE} pages; the other \
         {} are spare. A page is programmed once; only a whole block can be erased.",
        BLOCKS * PAGES - VISIBLE
    ));
    toy.write_all(0..WRITTEN, collects);
    toy.show(format!(
        "The host wrote {WRITTEN} pages. Wear levelling spreads them over all blocks, so that none \
         wears out before the others."
    ));
    if collects {
        with_collection(&mut toy);
    } else {
        without_collection(&mut toy);
    }
    toy.steps
}

fn without_collection(toy: &mut Toy) {
    toy.write_all((0..8).map(|page| page * 3), false);
    toy.show(
        "It wrote 8 of them again. They went to erased pages: what was there before is stale."
            .to_owned(),
    );
    toy.write_all(WRITTEN..VISIBLE, false);
    toy.write_all(1..5, false);
    toy.show("It wrote 8 new pages and 4 old ones. No erased page is left.".to_owned());
    let refused = !toy.write(2, false);
    toy.show(format!(
        "The next write {}, although the device is only {} % full of real data. Each block still \
         holds pages in use, so none can be erased. The device is read-only.",
        if refused { "finds no page" } else { "finds a page" },
        100 * toy.count(Cell::is_used) / (BLOCKS * PAGES)
    ));
}

fn with_collection(toy: &mut Toy) {
    let mut written = 0;
    for page in (0..).map(|step| (step * 7) % WRITTEN) {
        let erases = toy.erases;
        toy.write(page, true);
        written += 1;
        if toy.erases > erases {
            toy.show(format!(
                "{written} writes later, page {page} found only as many erased pages as a block \
                 has, which are kept to move into. The block with most stale pages was collected: \
                 its pages in use were moved, it was erased, and page {page} was written."
            ));
        }
        if toy.erases == 3 {
            break;
        }
    }
    toy.write_all((0..60).map(|step| (step * 11) % WRITTEN), true);
    toy.show(format!(
        "Sixty writes later: {} programs for {} pages of the host, a write amplification of {:.2}. \
         It goes on like this.",
        toy.programs,
        toy.host_pages,
        f64::from(toy.programs) / f64::from(toy.host_pages)
    ));
}

impl Cell {
    fn is_used(self) -> bool {
        matches!(self, Self::Used(_))
    }

    fn is_free(self) -> bool {
        self == Self::Free
    }

    fn is_stale(self) -> bool {
        self == Self::Stale
    }
}

impl Toy {
    fn show(&mut self, text: String) {
        let &mut Self { blocks, host_pages, programs, erases, .. } = self;
        let (used_pages, stale_pages) = (self.count(Cell::is_used), self.count(Cell::is_stale));
        let free_pages = self.count(Cell::is_free);
        self.steps.push(Step {
            text,
            blocks,
            host_pages,
            programs,
            erases,
            used_pages,
            stale_pages,
            free_pages,
        });
    }

    fn count(&self, is: fn(Cell) -> bool) -> usize {
        self.blocks.iter().flatten().filter(|cell| is(**cell)).count()
    }

    fn count_in(&self, block: usize, is: fn(Cell) -> bool) -> usize {
        self.blocks[block].iter().filter(|cell| is(**cell)).count()
    }

    fn write_all(&mut self, pages: impl Iterator<Item = usize>, collects: bool) {
        for page in pages {
            self.write(page, collects);
        }
    }

    /// Returns false if there is no page to write to.
    fn write(&mut self, page: usize, collects: bool) -> bool {
        if collects && self.count(Cell::is_free) <= PAGES {
            self.collect();
        }
        let written = self.program(page, None);
        self.host_pages += u32::from(written);
        written
    }

    /// Programs a page in the block with the most erased pages, other than `without`; returns false
    /// if there is no erased page.
    fn program(&mut self, page: usize, without: Option<usize>) -> bool {
        let blocks = (0..BLOCKS).rev().filter(|&block| Some(block) != without);
        let Some(block) = blocks.max_by_key(|&block| self.count_in(block, Cell::is_free)) else {
            return false;
        };
        let Some(slot) = self.blocks[block].iter().position(|cell| cell.is_free()) else {
            return false;
        };
        if let Some((block, slot)) = self.places[page].replace((block, slot)) {
            self.blocks[block][slot] = Cell::Stale;
        }
        self.blocks[block][slot] = Cell::Used(page as u8);
        self.programs += 1;
        true
    }

    /// Moves the valid pages out of the block with the most stale pages, and erases it.
    fn collect(&mut self) {
        let stale = |block: &usize| self.count_in(*block, Cell::is_stale);
        let Some(victim) = (0..BLOCKS).rev().max_by_key(stale) else { return };
        for cell in self.blocks[victim] {
            if let Cell::Used(page) = cell {
                self.program(usize::from(page), Some(victim));
            }
        }
        self.blocks[victim] = [Cell::Free; PAGES];
        self.erases += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_spread_over_all_blocks() {
        let steps = story(false);
        for block in steps[1].blocks {
            assert_eq!(block.iter().filter(|cell| cell.is_used()).count(), WRITTEN / BLOCKS);
        }
    }

    #[test]
    fn without_collection_it_ends_read_only_three_quarters_full() {
        let steps = story(false);
        let last = steps.last().unwrap();
        assert!(last.text.contains("read-only") && last.text.contains("finds no page"));
        assert!(last.text.contains("76 % full"), "{}", last.text);
        assert_eq!((last.used_pages, last.stale_pages, last.free_pages), (38, 12, 0));
        assert_eq!(last.host_pages, 50);
    }

    #[test]
    fn with_collection_it_goes_on_and_loses_nothing() {
        let steps = story(true);
        for step in &steps[1..] {
            assert_eq!(step.used_pages, WRITTEN, "{}", step.text);
            assert!(step.free_pages >= PAGES - 1, "{}", step.text);
        }
        let last = steps.last().unwrap();
        assert!(last.host_pages > 100 && last.programs > last.host_pages, "{last:?}");
        assert!(steps.len() > 4 && last.erases > 3, "collections are shown");
    }
}
