//! Catalogues of hardware, and lists of cores.

use blockstone_size::hardware::catalogue::EXAMPLE;
use blockstone_size::hardware::{Catalogue, Demand, Plan, answer, cpu};

pub fn catalogues() -> Vec<Vec<u8>> {
    vec![EXAMPLE.as_bytes().to_vec()]
}

/// Reads a catalogue, and compares a need with each of its units.
pub fn catalogue(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    let Ok(catalogue) = Catalogue::parse("fuzz", text) else { return false };
    let demand = Demand {
        reads_per_s: Some(5000.0),
        writes_per_s: Some(5000.0),
        read_bytes_per_s: Some(50e6),
        write_bytes_per_s: Some(50e6),
        size_bytes: Some(1e12),
        cores: Some(4.0),
        ..Demand::default()
    };
    for named in &catalogue.units {
        let Ok(unit) = catalogue.unit(&named.name) else { return false };
        if let Ok(answer) = answer(&demand, &unit, &Plan::default()) {
            let _ = catalogue.packed(&unit.name, answer.units);
            for licence in &catalogue.licences {
                let _ = licence.of(&unit, answer.units);
            }
        }
    }
    true
}

pub fn performance_lists() -> Vec<Vec<u8>> {
    vec![b"processor,per core\n# measured\n\"A, 16 cores\",7.5\nB,10\n".to_vec()]
}

pub fn performances(input: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(input) else { return false };
    cpu::performances("fuzz", text).is_ok()
}
