//! Shrinks an input that shows a fault.

/// Returns the smallest input found with at most `tries` calls of `shows`, which `input` passes.
pub fn shrunk(input: &[u8], mut tries: usize, mut shows: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let mut best = input.to_vec();
    let mut size = best.len().div_ceil(2);
    while size > 0 {
        let (before, mut at) = (best.len(), 0);
        while at < best.len() {
            if tries == 0 {
                return best;
            }
            tries -= 1;
            let end = (at + size).min(best.len());
            let candidate = [&best[..at], &best[end..]].concat();
            if shows(&candidate) {
                best = candidate;
            } else {
                at = end;
            }
        }
        // Bytes that were kept may have become removable.
        if best.len() == before || size > 64 {
            size /= 2;
        }
    }
    plain(best, tries, shows)
}

/// Replaces bytes that do not matter by the digit zero.
fn plain(mut best: Vec<u8>, tries: usize, mut shows: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    for at in 0..best.len().min(tries) {
        let byte = best[at];
        if byte != b'0' {
            best[at] = b'0';
            if !shows(&best) {
                best[at] = byte;
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_matters_is_left() {
        let input = b"some text, then BAD, then 4711 more of it".repeat(20);
        let shows = |bytes: &[u8]| bytes.windows(3).any(|window| window == b"BAD");
        assert_eq!(shrunk(&input, 100_000, shows), b"BAD");
    }

    #[test]
    fn it_stops_after_the_tries() {
        let mut asked = 0;
        let small = shrunk(&[7; 1000], 10, |_| {
            asked += 1;
            false
        });
        assert_eq!((small.len(), asked), (1000, 10));
    }
}
