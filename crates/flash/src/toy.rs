//! Five blocks of ten pages, small enough to watch: why flash collects garbage, step by step.

pub const BLOCKS: usize = 5;
/// Pages of a block.
pub const PAGES: usize = 10;
pub const VISIBLE: usize = 30;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cell {
    /// Erased: can be programmed once.
    #[default]
    Free,
    /// Holds what was overwritten since.
    Stale,
    /// Holds this page of the host.
    #[serde(untagged)]
    Used(u8),
}

/// A picture with what was done before it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Step {
    pub text: String,
    pub blocks: [[Cell; PAGES]; BLOCKS],
    pub host_pages: u32,
    pub programs: u32,
    pub erases: u32,
}

#[derive(Clone, Debug, Default)]
struct Toy {
    blocks: [[Cell; PAGES]; BLOCKS],
    /// By page of the host.
    places: [Option<(usize, usize)>; VISIBLE],
    open: usize,
    next: usize,
    host_pages: u32,
    programs: u32,
    erases: u32,
    steps: Vec<Step>,
}

/// The story, without garbage collection or with it. Without it ends read-only.
pub fn story(collects: bool) -> Vec<Step> {
    let mut toy = Toy::default();
    toy.show(format!(
        "{BLOCKS} blocks of {PAGES} pages, all erased. The host sees {VISIBLE} pages; the other \
         {} are spare. A page is programmed once; only a whole block can be erased.",
        BLOCKS * PAGES - VISIBLE
    ));
    let all: Vec<usize> = (0..VISIBLE).collect();
    toy.write_all(&all, collects);
    toy.show("The host wrote each of its pages once. Three blocks are full.".to_owned());
    // Pages from all three blocks, so that none becomes stale as a whole.
    let some: Vec<usize> = (0..VISIBLE).filter(|page| page % 3 == 0).collect();
    toy.write_all(&some, collects);
    toy.show(format!(
        "It wrote {} of them again. They went to erased pages: what was there before is stale.",
        some.len()
    ));
    // With collection one block has to stay free.
    let until_full: Vec<usize> = (0..VISIBLE).filter(|page| page % 3 == 1).collect();
    if !collects {
        toy.write_all(&until_full, collects);
        toy.show("Ten more. No erased page is left, although twenty are stale.".to_owned());
        let refused = !toy.write(2, collects);
        toy.show(format!(
            "The next write {}. Each block still holds pages in use, so none can be erased. The \
             device is read-only.",
            if refused { "finds no page" } else { "finds a page" }
        ));
        return toy.steps;
    }
    for &page in &until_full {
        let erases = toy.erases;
        toy.write(page, collects);
        if toy.erases > erases {
            toy.show(format!(
                "Page {page} found only the reserve of one block left. The block with fewest pages \
                 in use was collected: they were moved, it was erased, and page {page} was written."
            ));
        }
    }
    let more: Vec<usize> = (0..60).map(|step| (step * 7) % VISIBLE).collect();
    toy.write_all(&more, collects);
    toy.show(format!(
        "Sixty writes later: {} programs for {} pages of the host, a write amplification of {:.2}. \
         It goes on like this.",
        toy.programs,
        toy.host_pages,
        f64::from(toy.programs) / f64::from(toy.host_pages)
    ));
    toy.steps
}

impl Toy {
    fn show(&mut self, text: String) {
        let &mut Self { blocks, host_pages, programs, erases, .. } = self;
        self.steps.push(Step { text, blocks, host_pages, programs, erases });
    }

    fn write_all(&mut self, pages: &[usize], collects: bool) {
        for &page in pages {
            self.write(page, collects);
        }
    }

    /// False when there is no page to write to.
    fn write(&mut self, page: usize, collects: bool) -> bool {
        if self.next == PAGES && !self.open_another(collects) {
            return false;
        }
        self.host_pages += 1;
        self.program(page);
        true
    }

    fn program(&mut self, page: usize) {
        if let Some((block, slot)) = self.places[page].replace((self.open, self.next)) {
            self.blocks[block][slot] = Cell::Stale;
        }
        self.blocks[self.open][self.next] = Cell::Used(page as u8);
        self.next += 1;
        self.programs += 1;
    }

    fn open_another(&mut self, collects: bool) -> bool {
        let is_free = |block: &usize| self.blocks[*block] == [Cell::Free; PAGES];
        let free: Vec<usize> = (0..BLOCKS).filter(is_free).collect();
        let Some(&first) = free.first() else { return false };
        let full = self.open;
        (self.open, self.next) = (first, 0);
        if collects && free.len() == 1 {
            self.collect(full);
        }
        true
    }

    /// The last free block was opened: moves the emptiest block into it and erases that.
    fn collect(&mut self, full: usize) {
        let in_use = |block: usize| {
            self.blocks[block].iter().filter(|cell| matches!(cell, Cell::Used(_))).count()
        };
        let candidates = (0..BLOCKS).filter(|&block| block != self.open);
        let Some(victim) = candidates.min_by_key(|&block| (in_use(block), block != full)) else {
            return;
        };
        for slot in 0..PAGES {
            if let Cell::Used(page) = self.blocks[victim][slot] {
                self.program(usize::from(page));
            }
        }
        self.blocks[victim] = [Cell::Free; PAGES];
        self.erases += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(step: &Step, is: fn(&Cell) -> bool) -> usize {
        step.blocks.iter().flatten().filter(|cell| is(cell)).count()
    }

    #[test]
    fn without_collection_it_ends_read_only() {
        let steps = story(false);
        let last = steps.last().unwrap();
        assert!(last.text.contains("read-only") && last.text.contains("finds no page"));
        assert_eq!(count(last, |cell| *cell == Cell::Stale), 20);
        assert_eq!(count(last, |cell| *cell == Cell::Free), 0);
        assert_eq!(last.host_pages, 50);
    }

    #[test]
    fn with_collection_it_goes_on_and_loses_nothing() {
        let steps = story(true);
        for step in &steps[1..] {
            assert_eq!(count(step, |cell| matches!(cell, Cell::Used(_))), VISIBLE, "{}", step.text);
        }
        let last = steps.last().unwrap();
        assert_eq!(last.host_pages, 110);
        assert!(last.programs > last.host_pages && last.erases > 0, "{last:?}");
        assert!(steps.len() > 4, "a collection is shown");
    }
}
