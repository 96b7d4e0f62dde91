//! Mutation of single values in JSON documents.

use blockstone_base::rng::Rng;
use serde_json::{Map, Value as Json};

use super::{ODD_NUMBERS, below, pick};

/// Values deeper than this stay as they are.
const DEPTH_MAX: usize = 24;

/// Returns `document` with one to four changes; `other` provides values and keys.
pub fn mutated(document: &Json, other: &Json, rng: &mut Rng) -> Vec<u8> {
    let mut document = document.clone();
    let most = 1 << rng.below(3);
    for _ in 0..=rng.below(most) {
        change(&mut document, other, rng, 0);
    }
    document.to_string().into_bytes()
}

/// Descends at random and changes the value where it stops.
fn change(value: &mut Json, other: &Json, rng: &mut Rng, depth: usize) {
    let goes_on = depth < DEPTH_MAX && rng.below(6) > 0;
    match value {
        Json::Object(map) if goes_on && !map.is_empty() => {
            let at = below(rng, map.len());
            if let Some(inner) = map.values_mut().nth(at) {
                change(inner, other, rng, depth + 1);
            }
        }
        Json::Array(list) if goes_on && !list.is_empty() => {
            let at = below(rng, list.len());
            change(&mut list[at], other, rng, depth + 1);
        }
        Json::Object(map) if rng.below(3) > 0 => change_map(map, other, rng),
        Json::Array(list) if rng.below(3) > 0 => change_list(list, other, rng),
        Json::Number(number) if rng.below(2) > 0 => *value = near(number, rng),
        _ => *value = fresh(other, rng),
    }
}

fn change_map(map: &mut Map<String, Json>, other: &Json, rng: &mut Rng) {
    let at = below(rng, map.len());
    let key = map.keys().nth(at).cloned().unwrap_or_default();
    match rng.below(3) {
        0 => drop(map.remove(&key)),
        1 => drop(map.insert(key, fresh(other, rng))),
        _ => {
            let moved = map.remove(&key).unwrap_or_default();
            map.insert(format!("{key}{}", pick(rng, ODD_NUMBERS)), moved);
        }
    }
}

fn change_list(list: &mut Vec<Json>, other: &Json, rng: &mut Rng) {
    let at = below(rng, list.len() + 1);
    let taken = list.get(at).cloned();
    match (rng.below(4), taken) {
        (0, Some(_)) => drop(list.remove(at)),
        (1, Some(value)) => (0..=rng.below(8)).for_each(|_| list.insert(at, value.clone())),
        (2, _) => list.clear(),
        _ => list.insert(at, fresh(other, rng)),
    }
}

/// Returns a number that differs by little, or by a power of two.
fn near(number: &serde_json::Number, rng: &mut Rng) -> Json {
    let by = [1, 2, 8, 1 << 10, 1 << 31, 1 << 32, 1 << 62][below(rng, 7)];
    match (number.as_u64(), rng.below(3)) {
        (Some(number), 0) => number.wrapping_add(by).into(),
        (Some(number), 1) => number.wrapping_sub(by).into(),
        (Some(number), _) => number.wrapping_mul(by).into(),
        (None, _) => number.as_f64().map_or(Json::Null, |number| (number * by as f64).into()),
    }
}

fn fresh(other: &Json, rng: &mut Rng) -> Json {
    match rng.below(10) {
        0 => Json::Null,
        1 => Json::Bool(rng.below(2) > 0),
        2 | 3 => serde_json::from_str(pick(rng, ODD_NUMBERS)).unwrap_or(Json::Null),
        4 => Json::String(pick(rng, ODD_NUMBERS).to_owned()),
        5 => Json::String("../../\u{1b}[31m<script>\u{202e}\n".to_owned()),
        6 => Json::Array(vec![Json::Null; below(rng, 9)]),
        7 => Json::Object(Map::new()),
        _ => part(other, rng).clone(),
    }
}

/// Returns a random value of a document.
fn part<'a>(value: &'a Json, rng: &mut Rng) -> &'a Json {
    let inner = match value {
        _ if rng.below(4) == 0 => None,
        Json::Object(map) => map.values().nth(below(rng, map.len())),
        Json::Array(list) => list.get(below(rng, list.len())),
        _ => None,
    };
    inner.map_or(value, |inner| part(inner, rng))
}
