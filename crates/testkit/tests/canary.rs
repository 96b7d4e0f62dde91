//! The canary: a test that fails on demand. `cargo xtask test` uses it to show that a failing test
//! fails the run.

#[test]
fn the_canary_fails_when_it_is_told_to() {
    assert!(std::env::var_os("BLOCKSTONE_CANARY").is_none(), "the canary failed as intended");
}
